
"use strict";
/* The tasks of report.html: their list and filters, a task opened to the swarm that worked on it, one attempt of it.
   Every view has an address: what follows # says which filters, order, task, attempt and part of it are on screen.
   Texts of models and data sets become text nodes and nothing else. Left out: figures and plots, which need no script. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("filters");
  const found = document.getElementById("found");
  const table = document.getElementById("tasks-table");
  const more = document.getElementById("more");
  const narrow = matchMedia("(max-width: 600px)");
  const STEP = narrow.matches ? 12 : 100; // rows on screen at first, and more at each request

  const percent = (x) => Math.round(100 * x) + "%";
  const words = (name) => name.replaceAll("_", " ");
  const plural = (n, one) => n + " " + one + (n === 1 ? "" : "s");
  const letterOf = Object.fromEntries(Object.entries(data.letters).map(([letter, name]) => [name, letter]));

  /* ── the address ── */
  const state = { task: "", attempt: "", view: "" };
  const address = (changes) => {
    const all = { ...settings(), task: state.task, attempt: state.attempt, view: state.view, ...changes };
    const kept = Object.entries(all).filter(([, value]) => value);
    return "#" + kept.map(([key, value]) => key + "=" + encodeURIComponent(value).replaceAll("%2F", "/")).join("&");
  };
  const remember = () => {
    const to = address({});
    if (location.hash !== to && (to !== "#" || location.hash.includes("="))) history.replaceState(null, "", to === "#" ? "#tasks" : to);
  };
  const copying = (label, text) => {
    const button = make("button", { type: "button", class: "plain" }, label);
    button.addEventListener("click", async () => {
      const value = text();
      try { await navigator.clipboard.writeText(value); } catch {
        const area = make("textarea", { readonly: true }); // where a page from disk has no clipboard
        area.value = value;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = label; }, 1500);
    });
    return button;
  };
  const here = (changes) => location.href.split("#")[0] + address(changes);

  /* ── filters and order ── */
  const boxes = {};
  const select = (id, label, options) => {
    const box = make("select", { id: "f-" + id, name: id });
    for (const [value, text] of options) box.append(make("option", { value }, text));
    form.append(make("label", { for: "f-" + id }, label, box));
    boxes[id] = box;
    return box;
  };
  const outcomes = [...new Set(data.tasks.flatMap((task) => Object.values(task.arms).map((play) => play.outcome)))].sort();
  const group = select("group", "Tasks", [
    ["", "all"], ["fail", "all-fail"], ["given", "given to the arms"], ["disagree", "arms disagree"], ["rescued", "rescued by some run"],
    ["lost", "rescued by no run"], ["open", "incomplete"], ...(data.tasks.some((t) => t.disputed) ? [["disputed", "disputed by the audit"]] : [])]);
  const only = select("only", "Rescued only by", [["", "any"], ...data.compared.map((name) => [name, "only " + name])]);
  const arm = select("arm", "Arm", [["", "any"], ...data.arms.map((name) => [name, name])]);
  const outcome = select("outcome", "Best attempt ends in", [["", "anything"], ...outcomes.map((o) => [o, words(o)])]);
  const tag = select("tag", "Tag", [["", "any"], ...data.tags.map((t) => [t, t])]);
  const word = make("input", { type: "search", id: "f-word", placeholder: "id, title, statement", autocomplete: "off" });
  form.append(make("label", { for: "f-word" }, "Holds the words", word));
  boxes.word = word;

  let statements = null; // read at the first search
  const searchable = async () => {
    if (statements || !word.value.trim()) return;
    try { statements = await inflate(document.getElementById("statements").textContent); } catch { statements = data.tasks.map(() => ""); }
  };
  const passes = (task, name) => Boolean(task.arms[name] && task.arms[name].passes);
  const rescued = (task) => Object.keys(task.arms).some((name) => name !== "base" && passes(task, name));
  const ahead = (task) => data.compared.filter((name) => passes(task, name));
  const groups = {
    "": () => true, fail: (t) => t.fail, given: (t) => t.given, rescued: (t) => t.given && rescued(t),
    lost: (t) => t.given && !rescued(t), open: (t) => t.open, disputed: (t) => Boolean(t.disputed),
    disagree: (t) => ahead(t).length > 0 && data.compared.some((name) => t.arms[name] && !passes(t, name)) };
  const fits = (task) => {
    if (!groups[group.value](task)) return false;
    if (only.value && ahead(task).join() !== only.value) return false;
    if (tag.value && !task.labels.includes(tag.value)) return false;
    if (arm.value && !task.arms[arm.value]) return false;
    const plays = arm.value ? [task.arms[arm.value]] : Object.values(task.arms);
    if (outcome.value && !plays.some((play) => play.outcome === outcome.value)) return false;
    const wanted = word.value.trim().toLowerCase();
    return !wanted || (task.id + "\n" + task.title + "\n" + (statements ? statements[place.get(task)] : "")).toLowerCase().includes(wanted);
  };

  const rank = (task, name) => {
    const play = task.arms[name];
    return play ? (play.passes ? 10 - play.first / 100 : play.fitness) : -1;
  };
  const place = new Map(data.tasks.map((task, i) => [task, i]));
  const byId = (a, b) => a.id.localeCompare(b.id, "en", { numeric: true });
  const columns = [
    { name: "Task", key: byId },
    ...data.tag_columns.map((name) => ({
      name, tag: name, key: (a, b) => String(a.tags[name] ?? "").localeCompare(String(b.tags[name] ?? ""), "en", { numeric: true }) })),
    { name: "Base passes", base: true, number: true, key: (a, b) => (a.base ?? -1) - (b.base ?? -1) || rank(a, "base") - rank(b, "base") },
    ...data.arms.filter((name) => name !== "base").map((name) => ({
      name, arm: name, number: true, key: (a, b) => rank(a, name) - rank(b, name) })),
  ];
  const order = select("order", "Order", [["", "most telling first"], ...columns.flatMap((column) => column.number
    ? [["-" + column.name, column.name + ", most first"], [column.name, column.name + ", least first"]]
    : [[column.name, column.name], ["-" + column.name, column.name + ", from the end"]])]);
  const reset = make("button", { type: "reset", class: "plain" }, "Clear");
  form.append(reset);
  const settings = () => Object.fromEntries(Object.entries(boxes).map(([id, box]) => [id, box.value.trim()]));

  const head = make("tr", { role: "row" });
  for (const column of columns) {
    const button = make("button", { type: "button" }, column.name);
    button.addEventListener("click", () => {
      const first = (column.number ? "-" : "") + column.name, second = (column.number ? "" : "-") + column.name;
      order.value = order.value === first ? second : first;
      draw();
      remember();
    });
    head.append(make("th", { scope: "col", role: "columnheader", class: column.number ? "n" : null }, button));
  }
  table.tHead.append(head);
  table.setAttribute("role", "table"); // said aloud, since a narrow screen lays it out as cards
  table.tBodies[0].setAttribute("role", "rowgroup");

  /* ── the list ── */
  const cell = (task, column) => {
    const td = (kind, text, title) => make("td", { role: "cell", class: kind, title, "data-name": column.name }, text);
    if (column.tag) return td(null, String(task.tags[column.tag] ?? ""));
    if (column.base) return td("n", task.base == null ? "incomplete" : task.base + " of " + data.group);
    const play = task.arms[column.arm];
    if (!play) return td("n", "");
    return play.passes
      ? td("n hit", "● r" + play.first, column.arm + ": first passed in round " + play.first)
      : td("n part", percent(play.fitness), column.arm + ": no pass; its best attempt passes " + percent(play.fitness) + " of the visible tests");
  };
  const lines = new Map(); // of the tasks that were drawn so far
  const line = (task) => {
    if (lines.has(task)) return lines.get(task);
    const button = make("button", { type: "button", class: "open-task", "aria-expanded": "false", id: "task-" + place.get(task) }, task.title || task.id);
    const made = make("tr", { class: "task", role: "row" }, make("th", { scope: "row", role: "rowheader" }, button));
    for (const column of columns.slice(1)) made.append(cell(task, column));
    const one = { row: made, button, inside: null };
    button.addEventListener("click", () => (one.inside ? shut(task) : open(task, "", "")));
    lines.set(task, one);
    return one;
  };
  let shown = STEP, list = [];
  const draw = () => {
    const falling = order.value.startsWith("-"), by = columns.find((column) => column.name === order.value.replace(/^-/, ""));
    head.querySelectorAll("th").forEach((th, i) => {
      if (columns[i] === by) th.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    });
    const first = (a, b) => place.get(a) - place.get(b);
    list = data.tasks.filter(fits).sort(by ? (a, b) => (falling ? -1 : 1) * by.key(a, b) || first(a, b) : first);
    table.tBodies[0].replaceChildren(...list.slice(0, shown).flatMap((task) => {
      const one = line(task);
      return one.inside ? [one.row, one.inside] : [one.row];
    }));
    found.textContent = list.length + " of " + plural(data.tasks.length, "task");
    more.hidden = list.length <= shown;
  };
  const refilter = async () => { await searchable(); shown = STEP; draw(); remember(); };

  /* ── a chunk: the attempts of a task ── */
  let chunks = null;
  const unpack = async (id) => {
    chunks ??= new Map(Object.entries(JSON.parse(document.getElementById("chunks").textContent)));
    if (!chunks.has(id)) return null;
    const chunk = await inflate(chunks.get(id));
    const text = (i) => (i == null ? null : chunk.texts[i]);
    let last = 0;
    chunk.attempts = chunk.columns.slot.map((_, i) => {
      const a = Object.fromEntries(Object.entries(chunk.columns).map(([name, column]) => [name, column[i]]));
      if (a.code != null) last = a.code += last;
      a.cut = chunk.cut[a.code];
      for (const name of ["code", "input", "expected", "got"]) a[name] = text(a[name]);
      [a.arm, a.rerun, a.round, a.particle] = a.slot.split("/").map((part, i) => (i ? Number(part) : part));
      const tests = a.visible + a.hidden, missed = [...tests].find((letter) => letter !== "P");
      a.outcome ??= missed ? data.letters[missed] : tests ? "pass" : "not_run";
      const passed = [...a.visible].filter((letter) => letter === "P").length;
      a.fitness = a.visible.length ? passed / a.visible.length : 0;
      a.score = passed + " of " + a.visible_total;
      a.pass = a.outcome === "pass";
      return a;
    });
    chunk.by = new Map(chunk.attempts.map((a) => [a.slot, a]));
    for (const a of chunk.attempts) {
      const holes = { own: chunk.by.get(a.parent), other: chunk.by.get(a.social) };
      a.sent = a.prompt == null ? null : chunk.prompts[a.prompt].map(([role, parts]) => {
        let cut = false;
        const full = parts.map((part) => {
          const [who, what] = String(part).split(".");
          cut ||= part === "problem" ? chunk.problem in chunk.cut : what ? what === "code" && Boolean(holes[who].cut) : part in chunk.cut;
          return part === "problem" ? text(chunk.problem) : what ? holes[who][what] : text(part);
        });
        return { role, text: full.join(""), cut };
      });
    }
    return chunk;
  };

  /* ── an opened task ── */
  const ended = (a) => words(a.outcome) + (a.error ? " (" + a.error + (a.line == null ? ")" : ", line " + a.line + ")") : "");
  const where = (a) => (a.rerun ? "re-run " + a.rerun + ", " : "") + "round " + a.round + ", particle " + a.particle;
  const shut = (task) => {
    const one = lines.get(task);
    one.inside.remove();
    one.inside = one.choose = null;
    one.button.setAttribute("aria-expanded", "false");
    if (state.task === task.id) Object.assign(state, { task: "", attempt: "", view: "" });
    remember();
  };
  const open = async (task, slot, view) => {
    const one = line(task);
    Object.assign(state, { task: task.id, attempt: slot, view });
    if (!one.inside) {
      const box = make("div", { class: "box" });
      one.inside = make("tr", { class: "inside", role: "row" }, make("td", { colspan: columns.length, role: "cell" }, box));
      one.button.setAttribute("aria-expanded", "true");
      if (one.row.isConnected) one.row.after(one.inside);
      await fill(task, box, one);
    }
    if (slot && one.choose) one.choose(slot, view);
    remember();
  };
  const fill = async (task, box, one) => {
    box.append(make("div", { class: "bar" }, make("h3", {}, task.title || task.id),
      copying("Copy link", () => here({ task: task.id, attempt: "", view: "" })), copying("Copy id", () => task.id)));
    const about = Object.entries(task.tags).map(([k, v]) => k + " " + v);
    if (task.disputed) about.push("disputed by the audit: " + words(task.disputed));
    if (about.length) box.append(make("p", { class: "quiet" }, about.join(" · ")));
    let chunk = null;
    try { chunk = await unpack(task.id); } catch (why) {
      box.append(make("p", {}, "This browser cannot open the attempts (" + why.message + "); a newer one can, and so can: python run.py --show " + task.id));
      return;
    }
    if (!chunk) {
      const drawn = Object.keys(task.arms).length;
      box.append(make("p", {}, drawn ? "Its attempts are not in the page, to keep it small: python run.py --show " + task.id + " prints them." : "No attempt yet."));
      return;
    }
    if (chunk.problem != null) box.append(make("details", { class: "statement" }, make("summary", {}, "The problem"), make("pre", {}, chunk.texts[chunk.problem])));
    const detail = make("div", { class: "one" });
    const swarms = grids(chunk, (slot) => {
      one.choose(slot, "");
      Object.assign(state, { task: task.id, attempt: slot, view: "" });
      remember();
      if (detail.getBoundingClientRect().top > innerHeight - 120) detail.scrollIntoView({ block: "start" }); // else nothing seems to happen
    });
    box.append(...swarms.parts, detail);
    one.choose = (slot, view) => {
      const a = chunk.by.get(slot);
      if (!a) return detail.replaceChildren(make("p", {}, "There is no attempt " + slot + " of this task."));
      swarms.mark(a);
      detail.replaceChildren(...attempt(task, chunk, a, view));
    };
    one.choose(telling(chunk).slot, "");
  };
  /* The attempt to begin with: the first pass that came of what another showed, else the first pass, else the nearest. */
  const telling = (chunk) => {
    const worth = (a) => (a.pass && a.arm !== "base" ? 4 : a.pass ? 2 : a.fitness) + (a.pass && a.social ? 2 : 0) + (a.pass && a.parent ? 1 : 0) - (a.pass ? a.round / 100 : 0);
    return chunk.attempts.reduce((best, a) => (worth(a) > worth(best) ? a : best));
  };

  /* Particles by rounds for each arm, and lines to what each attempt was shown. */
  const grids = (chunk, choose) => {
    const names = new Map(), buttons = new Map(), children = new Map();
    for (const a of chunk.attempts) {
      const name = a.arm + (a.rerun ? " re-run " + a.rerun : "");
      if (!names.has(name)) names.set(name, []);
      names.get(name).push(a);
      for (const kind of ["parent", "social"]) if (a[kind]) children.set(a[kind], [...(children.get(a[kind]) || []), [a, kind]]);
    }
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("aria-hidden", "true");
    const area = make("div", { class: "swarms", role: "group", "aria-label": "Attempts: arrow keys go from one to the next, Enter opens one" });
    const rank = (name) => (name.includes(" re-run ") ? 100 : 0) + [...data.arms, name].indexOf(name.split(" ")[0]);
    for (const [name, attempts] of [...names].sort((a, b) => rank(a[0]) - rank(b[0]))) {
      const rounds = [...new Set(attempts.map((a) => a.round))].sort((a, b) => a - b), n = 1 + Math.max(...attempts.map((a) => a.particle));
      const passed = attempts.filter((a) => a.pass).length;
      const body = make("tbody", {});
      for (const r of rounds) {
        const row = make("tr", {}, make("th", { scope: "row" }, "r" + r));
        for (let i = 0; i < n; i++) {
          const a = attempts.find((b) => b.round === r && b.particle === i);
          if (!a) { row.append(make("td", {})); continue; }
          const said = name + ", " + where(a) + ": " + ended(a) + ", " + percent(a.fitness) + " of the visible tests"
            + (a.parent ? "; shown its own best " + a.parent : "") + (a.social ? " and another's " + a.social : "");
          const seen = a.pass ? ["●"] : [String(Math.round(100 * a.fitness)), make("small", {}, letterOf[a.outcome] || "?")];
          const button = make("button", { type: "button", tabindex: "-1", title: said, class: a.pass ? "pass" : a.fitness >= 0.67 ? "f2" : a.fitness >= 0.34 ? "f1" : null },
            make("span", { class: "heard" }, said), make("span", { "aria-hidden": "true" }, ...seen));
          button.addEventListener("click", () => choose(a.slot));
          for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => trace(a));
          for (const event of ["mouseleave", "blur"]) button.addEventListener(event, () => trace(current));
          buttons.set(a.slot, button);
          row.append(make("td", {}, button));
        }
        body.append(row);
      }
      const top = make("tr", {}, make("td", {}));
      for (let i = 0; i < n; i++) top.append(make("th", { scope: "col", "aria-label": "particle " + i }, String(i)));
      area.append(make("table", { class: "swarm" }, make("caption", {}, name, make("small", {}, " " + passed + " of " + attempts.length + " passed")), make("thead", {}, top), body));
    }
    area.append(svg);
    /* the lines */
    let current = null;
    const path = (from, to, kind) => {
      const base = area.getBoundingClientRect(), [a, b] = [from, to].map((x) => x.getBoundingClientRect());
      const [x1, y1, x2, y2] = [a.left + a.width / 2 - base.left, a.bottom - base.top, b.left + b.width / 2 - base.left, b.top - base.top];
      const line_ = document.createElementNS("http://www.w3.org/2000/svg", "path");
      line_.setAttribute("class", kind);
      line_.setAttribute("d", `M ${x1} ${y1} L ${x2} ${y2}`);
      svg.append(line_);
    };
    const trace = (a) => {
      svg.replaceChildren();
      for (const button of buttons.values()) button.classList.remove("kin");
      if (!a) return;
      const seen = new Set(), todo = [a];
      while (todo.length) {
        const child = todo.pop();
        for (const kind of ["parent", "social"]) {
          const from = chunk.by.get(child[kind]), key = child.slot + kind;
          if (!from || seen.has(key)) continue;
          seen.add(key);
          path(buttons.get(from.slot), buttons.get(child.slot), kind);
          buttons.get(from.slot).classList.add("kin");
          todo.push(from);
        }
      }
      for (const [child, kind] of children.get(a.slot) || []) path(buttons.get(a.slot), buttons.get(child.slot), kind + " child");
    };
    /* one stop for Tab; arrows go where the next button lies */
    area.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step || !event.target.matches("button")) return;
      event.preventDefault();
      const from = event.target.getBoundingClientRect(), x = from.left + from.width / 2, y = from.top + from.height / 2;
      let best = null, least = Infinity;
      for (const button of buttons.values()) {
        const to = button.getBoundingClientRect(), dx = to.left + to.width / 2 - x, dy = to.top + to.height / 2 - y;
        const along = dx * step[0] + dy * step[1], across = Math.abs(dx * step[1]) + Math.abs(dy * step[0]);
        if (along > 2 && along + 4 * across < least) [best, least] = [button, along + 4 * across];
      }
      if (!best) return;
      event.target.tabIndex = -1;
      best.tabIndex = 0;
      best.focus();
    });
    const mark = (a) => {
      for (const button of buttons.values()) { button.removeAttribute("aria-current"); button.tabIndex = -1; }
      buttons.get(a.slot).setAttribute("aria-current", "true");
      buttons.get(a.slot).tabIndex = 0;
      current = a;
      trace(a);
    };
    new ResizeObserver(() => trace(current)).observe(area);
    const used = [...new Set(chunk.attempts.filter((a) => !a.pass).map((a) => a.outcome))];
    const sample = (kind) => {
      const one = document.createElementNS("http://www.w3.org/2000/svg", "svg"), line_ = document.createElementNS("http://www.w3.org/2000/svg", "path");
      one.setAttribute("aria-hidden", "true");
      line_.setAttribute("class", kind);
      line_.setAttribute("d", "M 0 6 L 40 6");
      one.append(line_);
      return one;
    };
    const legend = make("p", { class: "legend" }, "Rows are rounds, columns particles. ● pass; else the percent of visible tests passed, and how it ended: "
      + used.map((o) => (letterOf[o] || "?") + " " + words(o)).join(", ") + ". Lines lead to what an attempt was shown:", sample("own"), "its own best", sample("social"), "another's best.");
    return { parts: [area, legend], mark };
  };

  /* ── one attempt ── */
  const letters = (name, text, total) => {
    if (!text) return make("p", { class: "quiet" }, name + " tests: not run (" + total + ")");
    const counted = {};
    for (const letter of text) counted[letter] = (counted[letter] || 0) + 1;
    const said = Object.entries(counted).map(([l, n]) => n + " " + words(data.letters[l] || l)).join(", ");
    const row = make("div", { class: "letters", role: "img", "aria-label": name + " tests: " + said, title: said },
      make("span", { class: "name" }, name + " " + (counted.P || 0) + " of " + text.length));
    for (const letter of text) row.append(make("i", { class: letter === "P" ? "P" : letter === "." ? "dot" : null }, letter));
    const missed = Object.entries(counted).filter(([l]) => l !== "P").map(([l, n]) => l + " " + words(data.letters[l] || l) + " " + n);
    if (missed.length) row.append(make("span", { class: "key" }, missed.join(", ")));
    return row;
  };
  const attempt = (task, chunk, a, view) => {
    const own = chunk.by.get(a.parent), other = chunk.by.get(a.social);
    const link = (b) => {
      const to = make("a", { class: "slot", href: address({ task: task.id, attempt: b.slot, view: "" }) }, where(b));
      return make("span", {}, "(", to, ", " + (b.pass ? "a pass" : percent(b.fitness) + " of the visible tests") + ")");
    };
    const title = make("div", { class: "bar" },
      make("h4", {}, a.arm + " · " + where(a), make("span", { class: "badge" + (a.pass ? " pass" : "") }, (a.pass ? "● " : "") + ended(a))),
      copying("Copy link", () => here({ task: task.id, attempt: a.slot, view })),
      a.code == null ? null : copying("Copy program", () => a.code),
      a.sent ? copying("Copy prompt", () => a.sent.map((m) => m.text).join("\n\n")) : null);
    const told = make("p", {});
    if (!a.parent) told.append("A fresh draw: it was shown the bare problem.");
    else {
      told.append("It was shown its own best ", own ? link(own) : a.parent);
      if (a.social) told.append(" and another's best ", other ? link(other) : a.social);
      told.append(".");
    }
    const parts = [title, told, letters("visible", a.visible, a.visible_total), letters("hidden", a.hidden, a.hidden_total)];
    if (a.got != null && !a.pass) {
      const three = make("div", { class: "three" });
      for (const [name, text] of [["First failed visible test: input", a.input], ["expected", a.expected], ["got", a.got]])
        if (text != null) three.append(make("div", {}, make("h5", {}, name), make("pre", { tabindex: "0" }, text || "(nothing)")));
      parts.push(three);
    }
    const views = [["program", "Program", () => program(a)]];
    if (own && a.code != null && own.code != null) views.push(["own", "Against its own best", () => difference(own.code, a.code, other && other.code, "its own best", undefined, a.line)]);
    if (other && a.code != null && other.code != null) views.push(["other", "Against the neighbour's", () => difference(other.code, a.code, own && own.code, "the neighbour's", "its own best", a.line)]);
    views.push(["prompt", "Prompt as sent", () => prompt(a)]);
    const tabs = make("div", { role: "tablist", "aria-label": "Parts of this attempt" });
    const panel = make("div", { role: "tabpanel", id: "panel-" + place.get(task), tabindex: "0" });
    const pick = (name, focus) => {
      [...tabs.children].forEach((tab) => {
        const on = tab.dataset.view === name;
        tab.setAttribute("aria-selected", String(on));
        tab.tabIndex = on ? 0 : -1;
        if (on) { panel.setAttribute("aria-labelledby", tab.id); if (focus) tab.focus(); }
      });
      panel.replaceChildren(...views.find((each) => each[0] === name)[2]());
    };
    views.forEach(([name, label], i) => {
      const tab = make("button", { type: "button", role: "tab", id: "tab-" + place.get(task) + "-" + name, "aria-controls": panel.id, "data-view": name }, label);
      const turn = (to) => { pick(to, true); Object.assign(state, { task: task.id, attempt: a.slot, view: to }); view = to; remember(); };
      tab.addEventListener("click", () => turn(name));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (step) { event.preventDefault(); turn(views[(i + step + views.length) % views.length][0]); }
      });
      tabs.append(tab);
    });
    const usual = views.some((each) => each[0] === "own") ? "own" : "program";
    pick(views.some((each) => each[0] === view) ? view : usual, false);
    return [...parts, tabs, panel];
  };

  /* Python, coloured: pieces of text with their kind. */
  const TOKEN = /(#[^\n]*)|((?:\b[rbfuRBFU]{1,2})?(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|\b(and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|True|False|None)\b|\b(\d[\w.]*)\b/g;
  const coloured = (code) => {
    const rows = [[]];
    const put = (text, kind) => text.split("\n").forEach((part, i) => {
      if (i) rows.push([]);
      if (part) rows[rows.length - 1].push(kind ? make("span", { class: kind }, part) : part);
    });
    let at = 0;
    for (const hit of code.matchAll(TOKEN)) {
      put(code.slice(at, hit.index));
      put(hit[0], hit[1] ? "c" : hit[2] ? "s" : hit[3] ? "k" : "d");
      at = hit.index + hit[0].length;
    }
    put(code.slice(at));
    if (rows.length > 1 && !rows[rows.length - 1].length) rows.pop();
    return rows;
  };
  /* raised: the line on which an exception ended the program. */
  const codeLine = (n, mark, kind, pieces, raised) => make("span", { "data-n": n, "data-mark": mark || (raised ? "✗" : ""), class: raised ? (kind || "") + " raised" : kind, title: raised ? "It ended here." : null }, ...pieces);
  const program = (a) => {
    if (a.code == null) return [make("p", {}, "No program found in the reply.")];
    const pre = make("pre", { class: "code", "aria-label": "Program" });
    coloured(a.code).forEach((pieces, i) => pre.append(codeLine(i + 1, "", null, pieces, i + 1 === a.line)));
    const parts = [pre];
    if (a.cut) parts.push(make("p", { class: "quiet" }, "Cut after " + a.code.length + " of " + a.cut + " characters; the whole program is in attempts.jsonl."));
    return parts;
  };
  const prompt = (a) => {
    if (!a.sent) return [make("p", {}, "It cannot be rebuilt: what follows from the folder is not what was sent, by its digest" + (a.sha ? " (" + a.sha + "…)." : "."))];
    const cut = a.sent.some((m) => m.cut);
    const said = cut ? "Rebuilt, and cut, to keep the page small." : "Rebuilt, and its digest is that of the prompt sent.";
    return [make("p", { class: "quiet" }, said), ...a.sent.flatMap((m) => [make("h5", {}, m.role), make("pre", {}, m.text)])];
  };

  /* Lines of two texts: [kind, line] with " " in both, "-" in the old one alone, "+" in the new one alone. */
  const compare = (old, now) => {
    let from = 0, end = 0;
    while (from < old.length && from < now.length && old[from] === now[from]) from++;
    while (end < old.length - from && end < now.length - from && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
    const a = old.slice(from, old.length - end), b = now.slice(from, now.length - end), out = old.slice(0, from).map((x) => [" ", x]);
    if (a.length * b.length > 4e6) out.push(...a.map((x) => ["-", x]), ...b.map((x) => ["+", x])); // too long to be told finer
    else {
      const w = b.length + 1, long = new Uint16Array((a.length + 1) * w);
      for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--)
        long[i * w + j] = a[i] === b[j] ? long[(i + 1) * w + j + 1] + 1 : Math.max(long[(i + 1) * w + j], long[i * w + j + 1]);
      let i = 0, j = 0;
      while (i < a.length || j < b.length) {
        if (i < a.length && j < b.length && a[i] === b[j]) { out.push([" ", a[i++]]); j++; }
        else if (i < a.length && (j === b.length || long[(i + 1) * w + j] >= long[i * w + j + 1])) out.push(["-", a[i++]]);
        else out.push(["+", b[j++]]);
      }
    }
    return [...out, ...old.slice(old.length - end).map((x) => [" ", x])];
  };
  /* lent: of the lines that are new here, those that stand in the other program it was shown. */
  const difference = (old, now, lent, what, whose = "the neighbour's program", line = null) => {
    const split = (text) => text.replace(/\n$/, "").split("\n");
    const lender = new Set(lent == null ? [] : split(lent).map((x) => x.trim()).filter(Boolean));
    const pre = make("pre", { class: "code", "aria-label": "Lines that differ from " + what });
    const colours = { now: coloured(now), old: coloured(old) };
    let n = 0, m = 0, added = 0, gone = 0, taken = 0;
    for (const [kind, text] of compare(split(old), split(now))) {
      if (kind === "-") { gone++; pre.append(codeLine("", "−", "del", colours.old[m] || [text])); }
      else {
        const is = kind === "+" && lender.has(text.trim());
        if (kind === "+") { added++; taken += is; }
        pre.append(codeLine(n + 1, kind === " " ? "" : is ? "◆" : "+", kind === " " ? null : is ? "lent" : "add", colours.now[n] || [text], n + 1 === line));
        n++;
      }
      if (kind !== "+") m++;
    }
    const said = added + gone === 0 ? "The same program as " + what + "." : "Against " + what + ": + " + plural(added, "line") + " added, − " + plural(gone, "line") + " gone"
      + (lent == null ? "." : "; ◆ " + taken + " of those added " + (taken === 1 ? "stands" : "stand") + " letter by letter in " + whose + ".");
    return [make("p", {}, said), pre];
  };

  /* ── sections that fold on a narrow screen, and the ways in ── */
  const unfold = (section, wide) => {
    section.classList.toggle("folded", !wide);
    section.querySelector("button.fold").setAttribute("aria-expanded", String(wide));
  };
  if (narrow.matches) document.querySelectorAll("main > section:not(#tasks)").forEach((section) => {
    const heading = section.querySelector("h2"), button = make("button", { type: "button", class: "fold" }, ...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => unfold(section, section.classList.contains("folded")));
    unfold(section, false);
  });
  const reachable = () => document.querySelectorAll("figure, main > section:not(#tasks) .scroll").forEach((box) => {
    if (box.scrollWidth <= box.clientWidth) return;
    const named = box.querySelector("[aria-label], caption");
    for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", "Scrolls sideways: " + ((named && (named.getAttribute("aria-label") || named.textContent)) || "table")]]) box.setAttribute(name, value);
  });
  const follow = async () => {
    const hash = location.hash.slice(1);
    if (!hash.includes("=")) {
      const section = hash && document.getElementById(hash);
      if (section && section.matches("section.folded")) { unfold(section, true); section.scrollIntoView(); }
      return;
    }
    const asked = Object.fromEntries(hash.split("&").map((pair) => {
      const [key, ...rest] = pair.split("=");
      try { return [key, decodeURIComponent(rest.join("="))]; } catch { return [key, rest.join("=")]; }
    }));
    for (const [id, box] of Object.entries(boxes)) {
      box.value = asked[id] || "";
      if (box.selectedIndex === -1) box.value = "";
    }
    const task = asked.task && data.tasks.find((each) => each.id === asked.task);
    await searchable();
    Object.assign(state, { task: asked.task || "", attempt: asked.attempt || "", view: asked.view || "" });
    draw();
    if (asked.task && !task) found.textContent = "There is no task " + asked.task + " here. " + found.textContent;
    if (!task) return;
    if (!list.includes(task)) { for (const box of Object.values(boxes)) box.value = ""; draw(); }
    if (list.indexOf(task) >= shown) { shown = list.indexOf(task) + 1; draw(); }
    await open(task, asked.attempt || "", asked.view || "");
    line(task).row.scrollIntoView({ behavior: "instant" });
    line(task).button.focus({ preventScroll: true });
  };
  form.addEventListener("input", refilter);
  form.addEventListener("reset", () => setTimeout(refilter));
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { shown += narrow.matches ? 40 : STEP; draw(); });
  addEventListener("hashchange", follow);
  addEventListener("resize", reachable);
  draw();
  reachable();
  follow();
})();
