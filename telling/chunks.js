"use strict";
/* What the scripts of all pages stand on, before them in one element: elements made of text, and chunks opened.
   Left out: what is in a chunk (packed.py), and every word on the screen. */
const { make, inflate } = (() => {
  /* An element with attributes and children. Strings become text nodes, so nothing in them is ever markup. */
  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== false && value != null) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child != null));
    return element;
  };
  const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~"; // packed.py's
  const VALUE = new Uint8Array(128);
  [...ALPHABET].forEach((letter, i) => { VALUE[letter.charCodeAt(0)] = i; });
  const bytesOf = (text) => {
    const lack = (5 - text.length % 5) % 5, whole = text + "~".repeat(lack), bytes = new DataView(new ArrayBuffer(whole.length / 5 * 4));
    for (let i = 0, at = 0; i < whole.length; at += 4) {
      let value = 0;
      for (let k = 0; k < 5; k++) value = value * 85 + VALUE[whole.charCodeAt(i++)];
      bytes.setUint32(at, value);
    }
    return new Uint8Array(bytes.buffer, 0, bytes.byteLength - lack);
  };
  const inflate = async (text) => {
    const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  };
  return { make, inflate };
})();
