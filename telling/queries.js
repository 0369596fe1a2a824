/* The questions of sql_calibrate's page: their list and filter, a question opened to its queries and their results.
   #task=ID names a question. Texts of models and databases become text nodes and nothing else. Left out: the verdict
   and its figures, which need no script. */
(() => {
  const block = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = block("data"), list = document.getElementById("questions"), found = document.getElementById("found");
  const more = document.getElementById("more"), form = document.getElementById("filters");
  const STEP = matchMedia("(max-width: 600px)").matches ? 12 : 60; // questions on screen at first, and more at each request
  const plural = (n, one) => n.toLocaleString("en") + " " + one + (n === 1 ? "" : "s");
  const words = (name) => name.replaceAll("_", " ");
  const KINDS = { mixed: "some samples match", near: "none matches, some cells are right", fail: "none has a right cell", pass: "all match", open: "not finished" };

  /* SQL, coloured. */
  const TOKEN = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?|`[^`]*`?|\[[^\]\n]*\]?)|\b(all|and|as|asc|between|by|case|cast|collate|cross|current|desc|distinct|else|end|escape|except|exists|filter|following|from|full|glob|group|groups|having|in|inner|intersect|is|join|left|like|limit|natural|not|null|nulls|offset|on|or|order|outer|over|partition|preceding|range|recursive|regexp|right|row|rows|select|then|unbounded|union|using|values|when|where|window|with)\b|\b(\d[\w.]*)\b/gi;
  const coloured = (text) => {
    const pre = make("pre", { class: "query" });
    let at = 0;
    for (const hit of text.matchAll(TOKEN)) {
      pre.append(text.slice(at, hit.index));
      pre.append(make("span", { class: hit[1] ? "c" : hit[2] ? "s" : hit[3] ? "" : hit[4] ? "k" : "d" }, hit[0]));
      at = hit.index + hit[0].length;
    }
    pre.append(text.slice(at));
    return pre;
  };

  /* A result: the rows that were kept of it, with their numbers. */
  const result = (name, view) => {
    const many = plural(view.rows, "row") + (view.width ? " of " + plural(view.width, "column") : "");
    const body = make("tbody", {});
    let last = -1;
    view.cells.forEach((cells, i) => {
      if (view.at[i] > last + 1) body.append(make("tr", {}, make("th", { scope: "row", "aria-label": "rows left out" }, "⋮")));
      last = view.at[i];
      const row = make("tr", {}, make("th", { scope: "row" }, String(view.at[i] + 1)));
      cells.forEach((cell, j) => {
        const off = view.off && view.off[i][j] === "x";
        const said = cell === null ? make("i", {}, "NULL") : cell.slice(1) || make("i", {}, "empty");
        row.append(make("td", { class: (cell && cell[0] === "n" ? "n" : "") + (off ? " off" : ""), title: off ? "has no partner on the other side" : null },
          off ? make("span", { class: "ne" }, "≠ ") : null, said));
      });
      if (view.width > cells.length) row.append(make("td", { class: "quiet" }, "… " + plural(view.width - cells.length, "column") + " more"));
      body.append(row);
    });
    if (view.rows > last + 1) body.append(make("tr", {}, make("th", { scope: "row", "aria-label": "rows left out" }, "⋮")));
    return make("div", { class: "scroll", "data-name": name + ": " + many },
      make("table", { class: "result" }, make("caption", {}, name + ": " + many), body));
  };

  const prediction = (one, golds) => {
    const badge = make("span", { class: "badge" + (one.passed ? " pass" : "") }, (one.passed ? "● match" : words(one.outcome)));
    const parts = [make("h3", {}, plural(one.n, "sample"), badge, make("span", { class: "badge" }, "cell F1 " + one.f1.toFixed(2)))];
    parts.push(one.query === null ? make("p", {}, "No query was found in the reply.") : coloured(one.query));
    if (one.reply) parts.push(make("pre", {}, one.reply));
    if (one.error) parts.push(make("p", {}, "It failed: ", make("code", {}, one.error)));
    const { mine, theirs, gold } = one;
    if (mine && theirs) {
      const off = mine.marked + theirs.marked;
      parts.push(make("p", { class: "quiet" }, off === 0 ? "The same cells, in other places: other columns, other rows or another order."
        : "≠ " + plural(mine.marked, "cell") + " of its result " + (mine.marked === 1 ? "has" : "have") + " no partner in the gold result, "
          + plural(theirs.marked, "gold cell") + " " + (theirs.marked === 1 ? "has" : "have") + " none in it."));
      parts.push(make("div", { class: "pair" }, result("Its result", mine), result(golds.length > 1 ? "Result of gold query " + (gold + 1) : "Gold result", theirs)));
    } else if (one.passed) parts.push(make("p", { class: "quiet" }, "Its rows are the gold query's."));
    else if (one.outcome === "wrong_answer") parts.push(make("p", { class: "quiet" }, "Its result was not kept: this folder is of an older version."));
    return make("div", { class: "one" }, ...parts);
  };

  let chunks = null;
  const reachable = (within) => { // what scrolls is to be reached by keyboard
    for (const part of within.querySelectorAll("figure, pre, .scroll")) {
      if (part.scrollWidth <= part.clientWidth && part.scrollHeight <= part.clientHeight) continue;
      const named = part.querySelector("[aria-label], caption"), name = part.dataset.name || (named && (named.getAttribute("aria-label") || named.textContent));
      for (const [key, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", name || "Scrolls"]]) part.setAttribute(key, value);
    }
  };
  const fill = async (box, id) => {
    if (box.dataset.filled) return;
    box.dataset.filled = "1";
    chunks ??= new Map(Object.entries(block("chunks")));
    if (!chunks.has(id)) { box.append(make("p", {}, "Left out, to keep the page small: it is in attempts.jsonl and checks.jsonl.")); return; }
    const chunk = await inflate(chunks.get(id));
    const tables = make("details", {}, make("summary", {}, "The tables, as the prompt shows them"), make("pre", {}, chunk.tables));
    box.append(make("p", { class: "asked" }, chunk.question), tables);
    chunk.golds.forEach((gold, k) => {
      box.append(make("h3", {}, chunk.golds.length > 1 ? "Gold query " + (k + 1) : "Gold query", gold.ordered ? make("span", { class: "badge" }, "its order counts") : null), coloured(gold.query));
      box.append(result("Gold result", gold.result));
    });
    for (const one of chunk.predictions) box.append(prediction(one, chunk.golds));
    reachable(box);
  };

  /* ── the list ── */
  const lines = new Map();
  const line = (q) => {
    if (!lines.has(q.id)) {
      const box = make("div", { class: "box" });
      const said = q.kind === "open" ? "not finished" : q.passes + " of " + q.n + " match" + (q.kind === "pass" ? "" : " · best other " + q.best.toFixed(2));
      const details = make("details", { class: "question" }, make("summary", {}, make("span", { class: "title" }, q.title), make("span", { class: "quiet" }, said)), box);
      details.addEventListener("toggle", () => {
        if (details.open) { fill(box, q.id); history.replaceState(null, "", "#task=" + encodeURIComponent(q.id)); }
      });
      lines.set(q.id, make("li", {}, details));
    }
    return lines.get(q.id);
  };
  const kind = make("select", { id: "kind" }, make("option", { value: "" }, "all questions"));
  for (const [name, said] of Object.entries(KINDS)) {
    const n = data.filter((q) => q.kind === name).length;
    if (n) kind.append(make("option", { value: name }, said + " (" + n.toLocaleString("en") + ")"));
  }
  const search = make("input", { type: "search", id: "search" });
  form.append(make("label", {}, "Show", kind), make("label", {}, "Words in the question", search));
  let shown = STEP;
  const draw = () => {
    const wanted = search.value.toLowerCase();
    const fits = data.filter((q) => (!kind.value || q.kind === kind.value) && (!wanted || (q.id + " " + q.said).toLowerCase().includes(wanted)));
    list.replaceChildren(...fits.slice(0, shown).map(line));
    found.textContent = fits.length.toLocaleString("en") + " of " + plural(data.length, "question");
    more.hidden = fits.length <= shown;
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const event of ["input", "change"]) form.addEventListener(event, () => { shown = STEP; draw(); });
  more.addEventListener("click", () => { shown += 4 * STEP; draw(); });
  const follow = () => {
    const id = new URLSearchParams(location.hash.slice(1)).get("task"), at = data.findIndex((q) => q.id === id);
    if (at < 0) return;
    kind.value = search.value = "";
    shown = Math.max(shown, at + 1);
    draw();
    const details = line(data[at]).firstChild;
    details.open = true;
    details.scrollIntoView();
    details.firstChild.focus({ preventScroll: true });
  };
  addEventListener("hashchange", follow);
  addEventListener("resize", () => reachable(document));
  draw();
  follow();
  reachable(document);
})();
