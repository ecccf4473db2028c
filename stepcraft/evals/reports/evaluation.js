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

  function begin(samples) {
    const [first, second, score, show, words] = ["first", "second", "score", "show", "words"].map(by);
    const methods = [...new Set(samples.flatMap((sample) => Object.keys(sample.runs)))];
    const names = [...new Set(samples.flatMap((sample) => Object.values(sample.runs).flatMap((run) => Object.keys(run?.scores ?? {}))))];
    const filters = {
      all: ["all samples", () => true],
      differs: ["where both differ", (a, b) => a !== null && b !== null && a !== b],
      better: ["where the first is better", (a, b) => a !== null && b !== null && a > b],
      worse: ["where the first is worse", (a, b) => a !== null && b !== null && a < b],
      right: ["where the first is right (full score)", (a) => a !== null && a >= 1],
      wrong: ["where the first is wrong (less)", (a) => a !== null && a < 1],
      changed: ["where the answers differ", (a, b, sample) => new Set(chosen(sample).map((run) => run && answer(run))).size > 1],
      failed: ["where one of both failed", (a, b, sample) => chosen(sample).some((run) => run?.error)],
      warned: ["where one of both has warnings", (a, b, sample) => chosen(sample).some((run) => run?.warnings.length)],
    };
    let matching = [];
    let shown = 0;

    const compared = () => (second.value === "" ? [first.value] : [first.value, second.value]);
    const chosen = (sample) => compared().map((method) => sample.runs[method]);
    const scored = (run) => run?.scores[score.value] ?? null;
    const figure = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(2));
    const count = (number) => Number(number ?? 0).toLocaleString("en");
    const text = (tag, content) => element(tag, { dir: "auto" }, content);
    const prose = (content) => element("div", { class: "prose", dir: "auto" }, content);
    const answer = (run) => run.answer || (run.steps ?? []).map((step, place) => `${place + 1}. ${step}`).join("\n");

    function haystack(sample) {
      const texts = chosen(sample).flatMap((run) => (run ? [answer(run), run.error, ...(run.evidence ?? []).map((part) => part.text)] : []));
      return [sample.id, sample.question, ...texts].join("\n").toLowerCase();
    }

    function chip(run) {
      const value = scored(run);
      if (run?.error) return element("span", { class: "chip failed" }, "failed");
      if (value === null) return element("span", { class: "chip" }, "–");
      const kind = value >= 1 ? "full" : value <= 0 ? "none" : "part";
      return element("span", { class: `chip ${kind}` }, figure(value));
    }

    function passage(part) {
      const inside = element("details", {}, text("summary", part.title || "Untitled"), prose(part.text));
      if (part.source) inside.append(element("div", { class: "from", dir: "auto" }, part.source));
      return element("li", {}, inside);
    }

    // Calls are folded twice, so that a prompt of some pages does not hide the reply.
    function call(each) {
      const tokens = (each.tokens.input_tokens ?? 0) + (each.tokens.output_tokens ?? 0);
      return element("li", {}, element("details", {},
        element("summary", {}, text("span", [each.node, each.model].filter(Boolean).join(" · ") || "model"), " ",
          element("span", { class: "id" }, `${count(tokens)} tokens · ${count(each.seconds)} s`)),
        element("h5", {}, each.error ? "error" : "reply"), prose(each.error || each.reply),
        element("details", {}, element("summary", {}, "Prompt"), prose(each.prompt))));
    }

    function judged(each) {
      if (each.kind === "vote") return line(`${each.judge}, against ${each.against}: ${each.verdict ?? "no readable reply"}`, each.reply);
      if (!each.items) return line(`${each.judge}, ${each.kind}: no readable reply`, each.error || each.reply);
      const counts = {};
      for (const { verdict } of each.items) counts[verdict] = (counts[verdict] ?? 0) + 1;
      const says = Object.entries(counts).map(([verdict, number]) => `${number} ${verdict}`).join(", ");
      const items = each.items.map((part) => text("li", `${part.verdict}: ${part.text}${part.reason ? ` — ${part.reason}` : ""}`));
      return element("li", {}, element("details", {}, text("summary", `${each.judge}, ${each.kind}: ${says}`), element("ol", {}, ...items)));
    }

    function line(content, folded) {
      if (!folded) return text("li", content);
      return element("li", {}, element("details", {}, text("summary", content), prose(folded)));
    }

    function listed(heading, tag, items) {
      return items.length ? [element("h4", {}, heading), element(tag, {}, ...items)] : [];
    }

    function output(method, run) {
      const card = element("article", {}, text("h3", method));
      if (!run) {
        card.append(element("p", { class: "note" }, "Not run yet."));
        return card;
      }
      const { calls, input_tokens, cached_input_tokens, output_tokens } = run.usage;
      const cached = cached_input_tokens ? ` (${count(cached_input_tokens)} cached)` : "";
      const scores = Object.entries(run.scores).map(([name, value]) => `${name} ${figure(value)}`);
      const costs = [`${count(calls)} ${calls === 1 ? "call" : "calls"}`, `${count(input_tokens)} tokens in${cached}`, `${count(output_tokens)} out`, `${count(run.seconds)} s`];
      card.append(element("p", { class: "note" }, [...scores, ...costs].join(" · ")));
      if (run.error) card.append(element("p", { class: "failure", dir: "auto" }, run.error));
      if (answer(run)) card.append(element("div", { class: "prose answer", dir: "auto", tabindex: "0", role: "region", "aria-label": "Answer" }, answer(run)));
      card.append(
        ...listed("Warnings", "ul", run.warnings.map((warning) => line(warning))),
        ...listed("Judges", "ul", run.judged.map(judged)),
        ...listed("Evidence", "ol", (run.evidence ?? []).map(passage)),
        ...listed("Model calls", "ol", run.calls.map(call)),
      );
      return card;
    }

    function right(sample) {
      const contained = (sample.contains ?? []).map((names) => `contains ${names.join(" or ")}`);
      const steps = (sample.steps ?? []).map((step, place) => `${place + 1}. ${step}`);
      const facts = (sample.facts ?? []).map((fact) => `fact: ${fact}`);
      const rubric = (sample.rubric ?? []).map((criterion) => `criterion: ${criterion}`);
      return [...(sample.answers ?? []), ...(sample.long_answers ?? []), ...facts, ...rubric, ...contained, ...(steps.length ? [steps.join("\n")] : [])];
    }

    function fill(details, sample) {
      details.querySelectorAll(":scope > :not(summary)").forEach((old) => old.remove());
      if (right(sample).length) {
        details.append(element("div", { class: "known" }, element("h4", {}, "What is right"), ...right(sample).map(prose)));
      }
      const cards = compared().map((method) => output(method, sample.runs[method]));
      details.append(element("p", { class: "note" }, element("a", { href: permalink(sample) }, "Link to this sample")));
      details.append(element("div", { class: cards.length > 1 ? "side two" : "side" }, ...cards));
    }

    const permalink = (sample) => `#${new URLSearchParams({ sample: sample.id, first: first.value, second: second.value })}`;

    // #sample=ID&first=METHOD&second=METHOD opens a sample.
    function follow() {
      const wanted = new URLSearchParams(location.hash.slice(1));
      const place = samples.findIndex((sample) => sample.id === wanted.get("sample"));
      if (place < 0) return;
      for (const [select, name] of [[first, wanted.get("first")], [second, wanted.get("second")]]) {
        if (methods.includes(name)) select.value = name;
      }
      [show.value, words.value] = ["all", ""];
      update();
      while (shown <= place) more();
      const details = by("list").children[place].querySelector("details");
      details.open = true;
      details.scrollIntoView();
    }

    function item(sample) {
      const asked = element("span", { class: "asked", dir: "auto" }, element("span", { class: "id" }, `${sample.id} `), sample.question);
      const head = element("summary", {}, asked, element("span", { class: "chips" }, ...chosen(sample).map(chip)));
      const details = element("details", {}, head);
      details.addEventListener("toggle", () => details.open && fill(details, sample));
      return element("li", {}, details);
    }

    function more() {
      by("list").append(...matching.slice(shown, shown + BATCH).map(item));
      shown = Math.min(shown + BATCH, matching.length);
      by("more").hidden = shown >= matching.length;
      const listed = shown < matching.length ? `; the first ${count(shown)} are listed` : "";
      const scores = score.value ? ` Scores shown: ${score.value} of ${compared().join(" and of ")}.` : "";
      by("count").textContent = `${count(matching.length)} of ${count(samples.length)} samples${listed}.${scores}`;
    }

    function update() {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      const [, keeps] = filters[show.value];
      matching = samples.filter((sample) => {
        const [a, b] = chosen(sample).map(scored);
        if (!keeps(a, b ?? null, sample)) return false;
        if (!wanted.length) return true;
        const content = haystack(sample);
        return wanted.every((word) => content.includes(word));
      });
      if (["differs", "better", "worse"].includes(show.value)) {
        const distance = (sample) => Math.abs(scored(chosen(sample)[0]) - scored(chosen(sample)[1]));
        matching.sort((one, other) => distance(other) - distance(one));
      }
      by("list").replaceChildren();
      shown = 0;
      more();
    }

    function options(select, pairs) {
      select.append(...pairs.map(([value, text]) => element("option", { value }, text)));
    }

    options(first, methods.map((name) => [name, name]));
    options(second, [["", "none"], ...methods.map((name) => [name, name])]);
    options(score, names.map((name) => [name, name]));
    options(show, Object.entries(filters).map(([name, [text]]) => [name, text]));
    if (methods.length > 1) second.value = methods[1];
    const { first: after, second: before, score: most } = by("filters").dataset;
    if (before) {
      [first.value, second.value] = [after, before];
      const values = ({ runs }, name) => compared().map((method) => runs[method]?.scores[name] ?? null);
      const moves = (name) => samples.some((sample) => filters.differs[1](...values(sample, name)));
      score.value = names.includes(most) ? most : names.find(moves) ?? names[0] ?? "";
      show.value = moves(score.value) ? "differs" : "changed";
    }
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
    follow();
    window.addEventListener("hashchange", follow);
  }

  by("count").textContent = "Opening the samples…";
  read().then(begin).catch(() => {
    by("count").textContent = "This browser cannot open the samples; a current one can, and they are in the directory of the evaluation, too.";
  });
})();
