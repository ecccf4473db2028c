"use strict";
// The browser of samples. What samples and models say is only ever set as text.
(() => {
  const BATCH = 50;
  const by = (id) => document.getElementById(id);

  function element(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  async function read() {
    const packed = atob(by("data").textContent);
    const bytes = new Uint8Array(packed.length);
    for (let place = 0; place < packed.length; place++) bytes[place] = packed.charCodeAt(place);
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(unpacked).json();
  }

  function begin({ runs, texts, samples }) {
    const [first, second, score, show, words] = ["first", "second", "score", "show", "words"].map(by);
    const names = [...new Set(samples.flatMap((one) => one.runs.flatMap((run) => Object.keys(run?.scores ?? {}))))];
    const filters = {
      all: ["all samples", () => true],
      differs: ["where both differ", (a, b) => a !== null && b !== null && a !== b],
      better: ["where the first is better", (a, b) => a !== null && b !== null && a > b],
      worse: ["where the first is worse", (a, b) => a !== null && b !== null && a < b],
      right: ["where the first is right (full score)", (a) => a !== null && a >= 1],
      wrong: ["where the first is wrong (less)", (a) => a !== null && a < 1],
      failed: ["where one of both failed", (a, b, one) => chosen(one).some((run) => run && texts[run.error])],
      warned: ["where one of both has warnings", (a, b, one) => chosen(one).some((run) => run && run.warnings.length)],
    };
    let matching = [];
    let shown = 0;

    const chosen = (one) => (second.value === "" ? [one.runs[first.value]] : [one.runs[first.value], one.runs[second.value]]);
    const scored = (run) => run?.scores[score.value] ?? null;
    const figure = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(2));

    function haystack(one) {
      const spoken = chosen(one).flatMap((run) => (run ? [texts[run.answer], texts[run.error], ...run.evidence.map((part) => texts[part[1]])] : []));
      return [one.id, texts[one.question], ...spoken].join("\n").toLowerCase();
    }

    function chip(run) {
      const value = scored(run);
      if (run && texts[run.error]) return element("span", { class: "chip failed" }, "failed");
      if (value === null) return element("span", { class: "chip" }, "–");
      const kind = value >= 1 ? "full" : value <= 0 ? "none" : "part";
      return element("span", { class: `chip ${kind}` }, figure(value));
    }

    function passage([title, text, source]) {
      const inside = element("details", {}, element("summary", { dir: "auto" }, texts[title] || "Untitled"), element("div", { class: "prose", dir: "auto" }, texts[text]));
      if (texts[source]) inside.append(element("div", { class: "from", dir: "auto" }, texts[source]));
      return element("li", {}, inside);
    }

    // Calls are folded twice, so that a prompt of some pages does not hide the reply.
    function call([name, prompt, reply, tokens, seconds]) {
      const costs = `${tokens.toLocaleString("en")} tokens · ${seconds.toLocaleString("en")} s`;
      const asked = prompt.map(([role, text]) => element("div", {}, element("h5", {}, role), element("div", { class: "prose", dir: "auto" }, texts[text])));
      return element("li", {}, element("details", {},
        element("summary", {}, element("span", { dir: "auto" }, name || "model"), " ", element("span", { class: "id" }, costs)),
        element("h5", {}, "reply"), element("div", { class: "prose", dir: "auto" }, texts[reply]),
        element("details", {}, element("summary", {}, "Prompt"), ...asked)));
    }

    function listed(heading, tag, items) {
      return items.length ? [element("h4", {}, heading), element(tag, {}, ...items)] : [];
    }

    function output(number, run) {
      const card = element("article", {}, element("h3", { dir: "auto" }, runs[number]));
      if (!run) {
        card.append(element("p", { class: "note" }, "Not run yet."));
        return card;
      }
      const scores = Object.entries(run.scores).map(([name, value]) => `${name} ${figure(value)}`);
      const [calls, tokens, seconds] = run.cost;
      const costs = [`${calls.toLocaleString("en")} ${calls === 1 ? "call" : "calls"}`, `${tokens.toLocaleString("en")} tokens`, `${seconds.toLocaleString("en")} s`];
      card.append(element("p", { class: "note" }, [...scores, ...costs].join(" · ")));
      if (texts[run.error]) card.append(element("p", { class: "failure", dir: "auto" }, texts[run.error]));
      if (texts[run.answer]) card.append(element("div", { class: "prose answer", dir: "auto", tabindex: "0", role: "region", "aria-label": "Answer" }, texts[run.answer]));
      const line = (text) => element("li", { dir: "auto" }, text);
      card.append(
        ...listed("Warnings", "ul", run.warnings.map((one) => line(texts[one]))),
        ...listed("Judges", "ul", run.votes.map((vote) => line(texts[vote]))),
        ...listed("Evidence", "ol", run.evidence.map(passage)),
        ...listed("Model calls", "ol", run.calls.map(call)),
      );
      return card;
    }

    function fill(details, one) {
      details.querySelectorAll(":scope > div").forEach((old) => old.remove());
      if (one.right.length) {
        const right = one.right.map((text) => element("div", { class: "prose", dir: "auto" }, texts[text]));
        details.append(element("div", { class: "known" }, element("h4", {}, "What is right"), ...right));
      }
      const numbers = second.value === "" ? [first.value] : [first.value, second.value];
      details.append(element("div", { class: numbers.length > 1 ? "side two" : "side" }, ...numbers.map((number) => output(number, one.runs[number]))));
    }

    function item(one) {
      const head = element("summary", {}, element("span", { class: "asked", dir: "auto" }, element("span", { class: "id" }, `${one.id} `), texts[one.question]), element("span", { class: "chips" }, ...chosen(one).map(chip)));
      const details = element("details", {}, head);
      details.addEventListener("toggle", () => details.open && fill(details, one));
      return element("li", {}, details);
    }

    function more() {
      by("list").append(...matching.slice(shown, shown + BATCH).map(item));
      shown = Math.min(shown + BATCH, matching.length);
      by("more").hidden = shown >= matching.length;
      by("count").textContent = `${matching.length.toLocaleString("en")} of ${samples.length.toLocaleString("en")} samples; the first ${shown.toLocaleString("en")} are listed.`;
    }

    function update() {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      const [, keeps] = filters[show.value];
      matching = samples.filter((one) => {
        const [a, b] = chosen(one).map(scored);
        if (!keeps(a, b ?? null, one)) return false;
        if (!wanted.length) return true;
        const text = haystack(one);
        return wanted.every((word) => text.includes(word));
      });
      if (["differs", "better", "worse"].includes(show.value)) {
        const distance = (one) => Math.abs(scored(chosen(one)[0]) - scored(chosen(one)[1]));
        matching.sort((one, other) => distance(other) - distance(one));
      }
      by("list").replaceChildren();
      shown = 0;
      more();
    }

    function options(select, pairs) {
      select.append(...pairs.map(([value, text]) => element("option", { value }, text)));
    }

    options(first, runs.map((name, number) => [number, name]));
    options(second, [["", "none"], ...runs.map((name, number) => [number, name])]);
    options(score, names.map((name) => [name, name]));
    options(show, Object.entries(filters).map(([name, [text]]) => [name, text]));
    if (runs.length > 1) second.value = "1";
    for (const input of [first, second, score, show]) input.addEventListener("change", update);
    let waiting;
    words.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(update, 150);
    });
    by("more").addEventListener("click", () => {
      const next = shown;
      more();
      by("list").children[next]?.querySelector("summary").focus();
    });
    score.parentElement.hidden = !names.length;
    by("filters").hidden = false;
    update();
  }

  by("count").textContent = "Opening the samples…";
  read().then(begin).catch(() => {
    by("count").textContent = "This browser cannot open the samples; a current one can, and they are in the directory of the evaluation, too.";
  });
})();
