// Makes the flame graph fit its window, zoom, search and explain. The picture that was there before is drawn again from
// the table in the element "data"; flamegraph_svg.hpp says what it holds. Names are foreign text: they are only ever set as
// textContent.
(() => {
  'use strict';
  const SVG = 'http://www.w3.org/2000/svg', XHTML = 'http://www.w3.org/1999/xhtml';
  const MARGIN = 12, ROW = 18, BAR = 17, FACTS_LINE = 50, LEGEND_GAP = 23, LEGEND_ROW = 19, SPACE = 18;
  const NARROWEST = 1.5; // pixels: frames below are drawn together
  const CONTROLS = 314; // the width of the search box and its button
  const root = document.currentScript?.ownerSVGElement ?? document.documentElement;
  const part = (id) => root.querySelector('#' + id);
  const frames = part('frames'), facts = part('facts'), legend = part('legend'), missed = part('missed');
  const data = JSON.parse(part('data').textContent);
  if (data.total === 0) return;

  function element(name, attributes = {}, parent = null, text = null) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  // ---- The tree. A node begins at `x`, in the unit of the values; its children follow each other from there.

  function readNodes(table) {
    const nodes = [], callers = [];
    for (let at = 0; at < table.length; at += 4) {
      const [depth, frame, value, extra] = table.slice(at, at + 4);
      const node = { depth, frame, value, extra, caller: callers[depth - 1] ?? null, children: [], x: 0, inside: 0, found: false };
      if (node.caller) {
        node.x = node.caller.x + node.caller.inside;
        node.caller.inside += value;
        node.caller.children.push(node);
      }
      callers[depth] = node;
      nodes.push(node);
    }
    return nodes;
  }
  const nodes = readNodes(data.nodes);
  const isMerged = (node) => node.frame < 0;
  const nameOf = (node) => data.frames[node.frame][0];

  // ---- Words.

  const scales = {
    time: [[1, 'ns'], [1e3, 'us'], [1e6, 'ms'], [1e9, 's']],
    bytes: [[1, 'B'], [2 ** 10, 'KiB'], [2 ** 20, 'MiB'], [2 ** 30, 'GiB'], [2 ** 40, 'TiB']],
  };
  const timeUnits = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };

  // Three digits: 1.23, 12.3, 123.
  function scaled(value, scale) {
    const [divisor, unit] = scale.findLast(([size]) => value >= size * 0.9995) ?? scale[0];
    const number = value / divisor;
    const decimals = divisor === 1 ? 0 : number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
    return `${number.toFixed(decimals)} ${unit}`;
  }
  const counted = (count) => count.toLocaleString('en-US');
  function human(value) {
    if (data.unit in timeUnits) return scaled(value * timeUnits[data.unit], scales.time);
    return data.unit === 'bytes' ? scaled(value, scales.bytes) : counted(value);
  }
  const percent = (share, whole) => `${(100 * share / whole).toFixed(1)} %`;

  // How many columns of a font of fixed width a text takes: East Asian characters take two.
  const isPlain = (text) => /^[\x20-\x7e…]*$/.test(text);
  const columnOf = (character) => (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/.test(character) || character.length > 1 ? 2 : 1);
  const columnsOf = (text) => (isPlain(text) ? text.length : [...text].reduce((sum, character) => sum + columnOf(character), 0));

  // Brackets also occur in operators and arrows.
  function isOperator(text, at) {
    const before = text.slice(Math.max(0, at - 10), at), here = before + text[at];
    return before.endsWith('operator') || ['->', 'operator<<', 'operator>>', 'operator<=>', 'operator()'].some((one) => here.endsWith(one));
  }

  // Gives up what is in brackets, the innermost first, until the text fits.
  function withoutBrackets(text, open, close, columns) {
    const depths = [];
    let depth = 0, deepest = 0;
    for (let at = 0; at < text.length; ++at) {
      const isBracket = (text[at] === open || text[at] === close) && !isOperator(text, at);
      if (isBracket && text[at] === close && --depth < 0) return text;
      depths.push(depth);
      if (isBracket && text[at] === open) deepest = Math.max(deepest, ++depth);
    }
    if (depth !== 0) return text;
    let shorter = text;
    for (let limit = Math.min(deepest, 8); limit > 0 && columnsOf(shorter) > columns; --limit) {
      shorter = '';
      for (let at = 0; at < text.length; ++at) {
        if (depths[at] < limit) shorter += text[at];
        else if (depths[at - 1] < limit) shorter += '…';
      }
    }
    return shorter;
  }

  function withoutMiddle(text, columns) {
    const characters = [...text];
    let head = 0, tail = 0, used = 1;
    while (head + tail < characters.length) {
      const isHead = head <= tail;
      used += columnOf(isHead ? characters[head] : characters[characters.length - 1 - tail]);
      if (used > columns) break;
      if (isHead) ++head; else ++tail;
    }
    return characters.slice(0, head).join('') + '…' + characters.slice(characters.length - tail).join('');
  }

  function withoutArguments(name, columns) {
    if (columnsOf(name) <= columns) return name;
    const shorter = withoutBrackets(name, '<', '>', columns);
    return columnsOf(shorter) <= columns ? shorter : withoutBrackets(shorter, '(', ')', columns);
  }

  // "void std::vector<…>::push_back(…) const" -> "std::vector::push_back". In Go "main.(…).handle" has a receiver, which stays.
  function bare(name) {
    if (name.startsWith('[')) return name;
    const text = name.replaceAll('<…>', '').replaceAll(' const::', '::');
    const parameters = text.search(/(?<=.)(?<!operator)\([^()]*\)( [^()]*)?$/);
    if (parameters < 0) return text || name;
    // Only names with parameters have a return type. "operator new" holds a space of its own.
    const own = text.slice(0, parameters).replace(/(?<=.)\[[^[]*\]$/, '');
    const from = own.lastIndexOf('operator');
    return own.slice(own.lastIndexOf(' ', from < 0 ? own.length : from) + 1) || name;
  }

  // Inner template arguments go first, then the parameters, then all brackets and the scopes, and at last the middle.
  function fitted(name, columns) {
    let shorter = withoutArguments(name, columns);
    if (columnsOf(shorter) <= columns) return shorter;
    const scopes = bare(withoutArguments(shorter, 0)).split('::');
    shorter = scopes.pop();
    while (scopes.length > 0 && columnsOf(scopes.at(-1)) + 2 + columnsOf(shorter) <= columns) shorter = scopes.pop() + '::' + shorter;
    return columnsOf(shorter) <= columns ? shorter : withoutMiddle(shorter, columns);
  }

  // ---- What is shown: a range of values, and the node that it was chosen by.

  const whole = { x: 0, value: data.total, node: nodes[0] };
  let view = whole;
  let column = 7.25; // pixels of a character
  let width = 1200;
  let marked = null; // where the keyboard is

  function addFrame(node, left, right, top) {
    const group = element('g', { tabindex: node === marked ? 0 : -1, role: 'img', 'data-value': node.value }, frames);
    const [name, , , css, isProcess] = data.frames[node.frame];
    const inlined = node.extra === 1 ? 1 : 0;
    const size = right - left;
    element('rect', {
      class: css, x: left.toFixed(2), y: top - inlined, width: (size > 2 ? size - 0.7 : size).toFixed(2), height: BAR + inlined,
    }, group);
    const columns = Math.floor((size - 7) / column);
    if (columns >= 5 || columnsOf(name) <= columns) {
      const before = inlined && columns >= 8 ? '↳ ' : '';
      const text = isProcess ? `${name} ${percent(node.value, data.total)}` : name;
      element('text', { x: (left + 4).toFixed(1), y: top + 13 }, group, before + fitted(text, columns - before.length));
    }
    if (node.depth < view.node.depth) group.classList.add('above');
    if (node.found) group.classList.add('found');
    group.setAttribute('aria-label', `${name}, ${human(node.value)}, ${percent(node.value, data.total)}`);
    group.node = node;
    return group;
  }

  // A bar for frames that would each be too narrow.
  function addNarrow(bar, left, right, top) {
    const group = element('g', { 'data-value': bar.value, 'data-count': bar.count }, frames);
    element('rect', { class: 'narrow', x: left.toFixed(2), y: top, width: (right - left).toFixed(2), height: BAR }, group);
    if (bar.found) group.classList.add('found');
    group.bar = bar;
  }

  function drawFrames(top) {
    frames.replaceChildren();
    const scale = (width - 2 * MARGIN) / view.value;
    // What is left of the view, or right of it, is cut off: callers of what is shown fill the width.
    const pixel = (x) => MARGIN + Math.min(Math.max(x - view.x, 0), view.value) * scale;
    const rest = [nodes[0]];
    let rows = 1;
    while (rest.length > 0) {
      const node = rest.pop();
      addFrame(node, pixel(node.x), pixel(node.x + node.value), top + node.depth * ROW);
      rows = Math.max(rows, node.depth + 1);
      let bar = null;
      for (const child of node.children) {
        const left = pixel(child.x), right = pixel(child.x + child.value);
        if (right <= left) continue;
        if (right - left >= NARROWEST && !isMerged(child)) {
          rest.push(child);
        } else {
          bar ??= { x: child.x, value: 0, count: 0, caller: node, found: false };
          bar.value += child.value;
          bar.count += isMerged(child) ? child.extra : 1;
          bar.found ||= child.found;
        }
      }
      if (bar && pixel(bar.x + bar.value) - pixel(bar.x) >= NARROWEST) {
        addNarrow(bar, pixel(bar.x), pixel(bar.x + bar.value), top + (node.depth + 1) * ROW);
        rows = Math.max(rows, node.depth + 2);
      }
    }
    return rows;
  }

  // Texts one behind the other, in lines of the width. Returns the last line.
  function flow(group, line) {
    let left = MARGIN;
    for (const key of group.children) {
      const size = key.getBBox().width;
      if (left > MARGIN && left + size > width - MARGIN) {
        left = MARGIN;
        line += LEGEND_ROW;
      }
      key.setAttribute('transform', `translate(${left.toFixed(1)} ${line})`);
      left += size + SPACE;
    }
    return line;
  }

  function draw() {
    width = Math.max(320, root.clientWidth || root.getBoundingClientRect().width || 1200);
    const isWide = width > 760; // else the controls have a line of their own
    controls.setAttribute('x', isWide ? width - MARGIN - CONTROLS : MARGIN);
    status.setAttribute('x', isWide ? width - MARGIN : MARGIN);
    status.setAttribute('text-anchor', isWide ? 'end' : 'start');
    let line = flow(facts, FACTS_LINE);
    controls.setAttribute('y', isWide ? 12 : line + 10);
    if (!isWide) line += 54;
    status.setAttribute('y', isWide ? 54 : line);
    const top = flow(legend, line + LEGEND_GAP) + 10;
    const rows = drawFrames(top);
    frames.classList.toggle('searched', pattern !== null);
    const height = flow(missed, top + rows * ROW + 20) + 14;
    root.setAttribute('height', height);
    reset.disabled = view === whole && pattern === null;
    hideTip();
  }

  function zoom(to) {
    view = to;
    draw();
    sayMatched();
  }
  const zoomTo = (node) => zoom(node === nodes[0] ? whole : { x: node.x, value: node.value, node });
  const zoomToBar = (bar) => zoom({ x: bar.x, value: bar.value, node: bar.caller });

  // ---- Search. Each sample counts once: what a matching frame calls is already counted.

  let pattern = null;

  function matchedIn(from, limit) {
    let sum = 0;
    for (let at = 0; at < nodes.length; ++at) {
      const node = nodes[at];
      if (!node.found) continue;
      const left = Math.max(node.x, from), right = Math.min(node.x + node.value, limit);
      if (right > left) sum += right - left;
      while (at + 1 < nodes.length && nodes[at + 1].depth > node.depth) ++at;
    }
    return sum;
  }

  // What was too small for the table has no names to search, unless its caller matches.
  function unsearched() {
    let sum = 0;
    for (let at = 0; at < nodes.length; ++at) {
      const { depth, found } = nodes[at];
      if (isMerged(nodes[at])) sum += nodes[at].value;
      while (found && at + 1 < nodes.length && nodes[at + 1].depth > depth) ++at;
    }
    return sum;
  }

  function sayMatched() {
    status.removeAttribute('data-value');
    if (pattern === null) {
      status.textContent = view === whole ? '' : `zoomed: ${percent(view.value, data.total)} of all`;
      return;
    }
    const matched = matchedIn(0, data.total);
    let text = `${percent(matched, data.total)} matched (${human(matched)})`;
    if (view !== whole) text += `, ${percent(matchedIn(view.x, view.x + view.value), view.value)} of what is shown`;
    const hidden = unsearched();
    if (hidden >= data.total / 2000) text += `; ${percent(hidden, data.total)} merged, not searched`;
    status.textContent = text;
    status.setAttribute('data-value', matched);
  }

  // Without capitals, capitals do not matter.
  function search(text) {
    let wanted = null;
    try {
      wanted = text === '' ? null : new RegExp(text, /\p{Lu}/u.test(text) ? 'u' : 'iu');
    } catch (error) {
      input.classList.add('bad');
      status.textContent = `not a regular expression: ${error.message.replace(/^.*: /, '')}`;
      return;
    }
    input.classList.remove('bad');
    pattern = wanted;
    const matches = data.frames.map(([name]) => wanted !== null && wanted.test(name));
    for (const node of nodes) node.found = !isMerged(node) && matches[node.frame];
    draw();
    sayMatched();
  }

  function resetAll() {
    input.value = '';
    view = whole;
    search('');
  }

  // ---- The tooltip.

  function explain(node) {
    const [name, module, place, , isProcess] = data.frames[node.frame];
    const lines = [`${human(node.value)}, ${percent(node.value, data.total)} of all ${data.type}`];
    if (view !== whole && node.depth >= view.node.depth) lines.push(`${percent(node.value, view.value)} of what is shown`);
    const self = Math.max(0, node.value - node.inside);
    lines.push(`self ${human(self)}, ${percent(self, data.total)}`);
    if (!isProcess) lines.push([data.modules[module], place].filter(Boolean).join(' · '));
    if (node.extra > 0) lines.push(node.extra === 1 ? 'inlined into its caller' : 'inlined into its caller in some samples');
    return [name, lines];
  }
  const explainBar = (bar) => [
    `${counted(bar.count)} ${bar.count === 1 ? 'frame' : 'frames'} drawn together`,
    [`${human(bar.value)}, ${percent(bar.value, data.total)} of all ${data.type}`, `called by ${nameOf(bar.caller)}`],
  ];

  // Lines of at most so many characters.
  function wrapped(text, columns) {
    const characters = [...text], lines = [];
    for (let at = 0; at < characters.length; at += columns) lines.push(characters.slice(at, at + columns).join(''));
    return lines;
  }

  function showTip(group, x, y) {
    const [title, lines] = group.bar ? explainBar(group.bar) : explain(group.node);
    const columns = Math.max(20, Math.min(90, Math.floor((width - 60) / column)));
    tip.replaceChildren();
    const back = element('rect', { rx: 5 }, tip);
    const text = element('text', {}, tip);
    const add = (line, css) => element('tspan', { class: css, x: 9, dy: 17 }, text, line);
    for (const line of wrapped(fitted(title, 8 * columns), columns)) add(line, 'whole');
    for (const line of lines) for (const piece of wrapped(fitted(line, 3 * columns), columns)) add(piece, 'fact');
    tip.setAttribute('display', 'inline');
    const box = text.getBBox();
    back.setAttribute('width', box.width + 18);
    back.setAttribute('height', box.height + 14);
    text.setAttribute('y', 1);
    const frame = root.getBoundingClientRect();
    const bottom = window.innerHeight - frame.top; // of what can be seen
    const left = Math.max(2, Math.min(x + 14, width - box.width - 24));
    const below = y + 18, above = y - box.height - 24;
    const top = below + box.height + 16 > bottom && above > -frame.top ? above : below;
    tip.setAttribute('transform', `translate(${left.toFixed(0)} ${top.toFixed(0)})`);
  }

  function hideTip() {
    tip.setAttribute('display', 'none');
  }

  // ---- The keyboard: arrows walk through the tree that is shown.

  const groupOf = (node) => [...frames.children].find((group) => group.node === node);

  function mark(node) {
    const group = node && groupOf(node);
    if (!group) return;
    if (marked) groupOf(marked)?.setAttribute('tabindex', -1);
    marked = node;
    group.setAttribute('tabindex', 0);
    group.focus();
    const box = group.getBBox();
    showTip(group, Math.min(box.x + 10, width / 2), box.y + 4);
  }

  function beside(node, step) {
    const row = [...frames.children].map((group) => group.node).filter((other) => other && other.depth === node.depth);
    row.sort((left, right) => left.x - right.x);
    return row[row.indexOf(node) + step];
  }

  function walk(key) {
    const node = marked;
    if (key === 'ArrowUp') return mark(node.caller);
    if (key === 'ArrowDown') return mark(node.children.find((child) => !isMerged(child) && groupOf(child)));
    return mark(beside(node, key === 'ArrowLeft' ? -1 : 1));
  }

  function onKey(event) {
    const isTyping = event.target === input;
    if (event.key === 'Escape') {
      resetAll();
      input.blur();
    } else if (((event.ctrlKey || event.metaKey) && event.key === 'f' && !isTyping) || (event.key === '/' && !isTyping)) {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (!isTyping && marked && event.key.startsWith('Arrow')) {
      event.preventDefault();
      walk(event.key);
    } else if (!isTyping && marked && (event.key === 'Enter' || event.key === 'Backspace')) {
      event.preventDefault();
      const node = event.key === 'Enter' ? marked : view.node.caller ?? nodes[0];
      zoomTo(node);
      mark(node);
    }
  }

  // ---- Setting up.

  const tip = element('g', { id: 'tip', display: 'none' }, root);
  const controls = element('foreignObject', { id: 'search', width: CONTROLS, height: 30 }, root);
  const status = element('text', { id: 'status', class: 'faint', role: 'status', 'aria-live': 'polite' }, root);
  const form = document.createElementNS(XHTML, 'div');
  const input = document.createElementNS(XHTML, 'input');
  const reset = document.createElementNS(XHTML, 'button');
  form.setAttribute('style', 'white-space: nowrap');
  input.setAttribute('type', 'search');
  input.setAttribute('placeholder', 'Search: regular expression ( / )');
  input.setAttribute('aria-label', 'Search names by regular expression');
  reset.setAttribute('type', 'button');
  reset.textContent = 'Reset zoom';
  form.append(input, reset);
  controls.append(form);
  root.append(tip); // above all others

  const groupAt = (event) => event.target.closest?.('#frames > g');
  const choose = (group) => (group.bar ? zoomToBar(group.bar) : zoomTo(group.node));
  frames.addEventListener('click', (event) => {
    const group = groupAt(event);
    if (group) choose(group);
  });
  frames.addEventListener('mousemove', (event) => {
    const group = groupAt(event);
    const frame = root.getBoundingClientRect();
    if (group) showTip(group, event.clientX - frame.left, event.clientY - frame.top);
  });
  frames.addEventListener('mouseleave', hideTip);
  frames.addEventListener('focusin', (event) => { marked = groupAt(event)?.node ?? marked; });
  input.addEventListener('input', () => search(input.value));
  reset.addEventListener('click', resetAll);
  document.addEventListener('keydown', onKey);
  window.addEventListener('resize', () => requestAnimationFrame(draw));

  // From now on the picture has the width of its window.
  const probe = element('text', {}, frames, 'm'.repeat(100));
  column = probe.getComputedTextLength() / 100 || column;
  marked = nodes[0];
  root.setAttribute('role', 'group');
  root.removeAttribute('viewBox');
  root.setAttribute('width', '100%');
  draw();
})();
