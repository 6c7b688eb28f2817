"""Scripts that look for what is wrong with a page; each returns a list of it."""

# The rules of axe-core that can fail here, in short: names, roles, structure.
RULES = r"""
const problems = [], visible = (e) => e.checkVisibility({visibilityProperty: true}) && e.getBoundingClientRect().width > 0;
const say = (rule, e) => problems.push(`${rule}: ${e.outerHTML.slice(0, 120)}`);
const name = (e) => (e.getAttribute('aria-label') || (e.labels && e.labels.length && e.labels[0].innerText) || e.innerText || e.getAttribute('title') || '').trim();
for (const e of document.querySelectorAll('button, a[href], input, select, textarea, [role=button], [role=tab], [role=option], [role=application]')) if (visible(e) && !name(e) && !e.getAttribute('aria-labelledby')) say('control without a name', e);
for (const e of document.querySelectorAll('canvas, svg, img')) if (visible(e) && !e.getAttribute('aria-label') && e.getAttribute('aria-hidden') !== 'true' && !e.closest('[aria-hidden=true]')) say('picture without words', e);
const ids = new Set(); for (const e of document.querySelectorAll('[id]')) { if (ids.has(e.id)) say('id twice', e); ids.add(e.id); }
for (const e of document.querySelectorAll('[aria-controls], [aria-labelledby]')) for (const id of ['aria-controls', 'aria-labelledby'].map((a) => e.getAttribute(a)).filter(Boolean)) if (!document.getElementById(id)) say(`no element ${id}`, e);
if (document.querySelectorAll('h1').length !== 1) problems.push(`${document.querySelectorAll('h1').length} first headings`);
if (document.documentElement.lang !== 'en') problems.push('no language');
if (!document.title) problems.push('no title');
for (const e of document.querySelectorAll('main')) if (document.querySelectorAll('main').length !== 1) say('more than one main', e);
for (const e of document.querySelectorAll('[tabindex]')) if (e.tabIndex > 0) say('tabindex above 0', e);
for (const e of document.querySelectorAll('[role=tab]')) if (!e.closest('[role=tablist]')) say('tab outside a list', e);
for (const e of document.querySelectorAll('table')) if (visible(e) && !e.querySelector('th[scope]')) say('table without heads', e);
for (const e of document.querySelectorAll('button button, a a, a button, button a')) say('control inside a control', e);
for (const e of document.querySelectorAll('[aria-hidden=true] button, [aria-hidden=true] a[href], [aria-hidden=true] input')) if (visible(e)) say('hidden control', e);
return problems;"""

# Contrast of every visible text against what lies behind it.
CONTRAST = r"""
const luminance = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
const parse = (color) => (color.match(/[\d.]+/g) || []).map(Number);
const behind = (e) => { for (; e; e = e.parentElement) { const style = getComputedStyle(e), c = parse(style.backgroundColor); if (style.backgroundImage !== 'none') return null; if (c.length === 3 || c[3] > 0.99) return c; } return [255, 255, 255]; };
const bad = [];
for (const e of document.querySelectorAll('body *')) {
  if (!e.checkVisibility({visibilityProperty: true}) || e.closest('svg') || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
  const back = behind(e), front = parse(getComputedStyle(e).color);
  if (!back) continue;
  const [a, b] = [luminance(front), luminance(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5 && !(e.disabled || e.closest('[disabled]'))) bad.push(`${ratio.toFixed(2)} ${e.className} “${e.innerText.slice(0, 30)}”`);
}
return [...new Set(bad)];"""

# Text that is cut without an ellipsis, that leaves its box, or that lies on other text.
CUT = r"""
const problems = [], leaves = [];
for (const e of document.querySelectorAll('body *')) {
  if (!e.checkVisibility({visibilityProperty: true}) || e.closest('svg, noscript, .sheet, .results, dialog, .passes')) continue;
  const own = [...e.childNodes].filter((n) => n.nodeType === 3 && n.data.trim());
  if (!own.length) continue;
  const style = getComputedStyle(e);
  if (e.scrollWidth > e.clientWidth + 1 && style.textOverflow !== 'ellipsis' && style.display !== 'inline' && !['auto', 'scroll'].includes(style.overflowX) && e.tagName !== 'SELECT') problems.push(`cut: ${e.className} “${e.innerText.slice(0, 40)}”`);
  for (const n of own) {
    const range = document.createRange();
    range.selectNodeContents(n);
    for (const r of range.getClientRects()) {
      if (r.width < 2 || r.height < 2) continue;
      const clip = [...(function* () { for (let p = e; p; p = p.parentElement) if (getComputedStyle(p).overflowX !== 'visible') yield p.getBoundingClientRect(); })()].reduce((c, b) => ({left: Math.max(c.left, b.left), right: Math.min(c.right, b.right), top: Math.max(c.top, b.top), bottom: Math.min(c.bottom, b.bottom)}), {left: r.left, right: r.right, top: r.top, bottom: r.bottom});
      if (clip.right - clip.left > 2 && clip.bottom - clip.top > 2) leaves.push({...clip, e, fixed: Boolean(e.closest('nav.pages, .inspector, .legend, header'))});
    }
  }
}
leaves.forEach((a, i) => leaves.slice(i + 1).forEach((b) => {
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left), height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  if (a.e !== b.e && width > 2 && height > 4 && a.fixed === b.fixed && !a.e.contains(b.e) && !b.e.contains(a.e)) problems.push(`over: “${a.e.innerText.slice(0, 30)}” and “${b.e.innerText.slice(0, 30)}”`);
}));
return problems.slice(0, 8);"""

# Labels that are whole: nothing of cards, bars, legends and the like is shortened, and nothing leaves its bar; words of a
# chart lie apart and are readable; no value that a program forgot stands in the page; every wide box can be read.
FITS = r"""
const problems = [], visible = (e) => e.checkVisibility({visibilityProperty: true}) && e.getBoundingClientRect().width > 0, told = (e) => (e.innerText || e.textContent || e.placeholder || '').slice(0, 40);
for (const e of document.querySelectorAll('.cards *, .toolbar *, .legend *, header.top nav *, .multiples *, .told, .tabs *, .timeline .head *')) if (visible(e) && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline' && e.clientWidth > 0 && e.tagName !== 'SELECT') problems.push(`shortened: ${e.className} “${told(e)}”`);
for (const bar of document.querySelectorAll('.toolbar, .legend, .pass-head, .cards, header.top, .tabs')) {
  const outer = bar.getBoundingClientRect();
  for (const e of bar.children) { const r = e.getBoundingClientRect(); if (visible(e) && getComputedStyle(e).position !== 'fixed' && (r.left < outer.left - 1 || r.right > outer.right + 1 || r.top < outer.top - 1 || r.bottom > outer.bottom + 1)) problems.push(`out of its bar: ${e.className} “${told(e)}”`); }
}
const search = document.querySelector('.finder .search'), pen = document.createElement('canvas').getContext('2d');
pen.font = getComputedStyle(search).font;
if (pen.measureText(search.placeholder).width > search.clientWidth - 16) problems.push(`shortened: ${search.placeholder}`);
const walker = document.createTreeWalker(document.querySelector('#app'), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) if (!walker.currentNode.parentElement.closest('.log') && /^(null|undefined|NaN|\[object.*)$/.test(walker.currentNode.data.trim())) problems.push(`a forgotten ${walker.currentNode.data}`);
for (const chart of document.querySelectorAll('svg.chart')) {
  const words = [...chart.querySelectorAll('text')].filter((t) => t.textContent), boxes = words.map((t) => t.getBoundingClientRect()), scale = chart.getScreenCTM().a;
  words.forEach((t, i) => {
    if (parseFloat(getComputedStyle(t).fontSize) * scale < 8.99 || scale > 1.1) problems.push(`${(parseFloat(getComputedStyle(t).fontSize) * scale).toFixed(1)} px: ${t.textContent}`);
    boxes.slice(i + 1).forEach((b, k) => { const a = boxes[i]; if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) problems.push(`“${t.textContent}” on “${words[i + 1 + k].textContent}”`); });
  });
}
for (const e of document.querySelectorAll('.pad, .sheet')) if (visible(e) && e.scrollWidth > e.clientWidth + 1 && !e.querySelector('.flame')) problems.push(`wider than its box by ${e.scrollWidth - e.clientWidth}: ${told(e)}`);
for (const e of document.querySelectorAll('.multiples button')) { const r = e.getBoundingClientRect(), used = [...e.children].reduce((sum, c) => sum + c.getBoundingClientRect().height, 0); if (r.height > used + 12) problems.push(`blank: ${told(e)}`); }
for (const box of document.querySelectorAll('.cards')) {
  const cards = [...box.children], end = (e) => Math.round(e.getBoundingClientRect().right), line = parseFloat(getComputedStyle(cards[0].querySelector('.value')).lineHeight);
  if (Math.abs(end(cards[cards.length - 1]) - end(box)) > 2) problems.push('a void beside the last card');
  for (const v of box.querySelectorAll('.value')) if (!v.querySelector('.badges') && v.clientHeight > line + 2) problems.push(`a number in two lines: ${told(v)}`);
  for (const c of cards) if (/–,| – |^–|\n–|, –/.test(c.innerText) || /\b1 (nodes|operators|inputs|steps|passes)\b/.test(c.innerText)) problems.push(`says nothing: ${c.innerText.replace(/\n/g, ' ')}`);
}
for (const e of document.querySelectorAll('select')) { pen.font = getComputedStyle(e).font; const text = e.options[e.selectedIndex] ? e.options[e.selectedIndex].text : ''; if (visible(e) && pen.measureText(text).width + 22 > e.offsetWidth) problems.push(`shortened: ${text}`); }
for (const e of document.querySelectorAll('.choices')) if (e.nextElementSibling.getBoundingClientRect().top - e.getBoundingClientRect().bottom < 8) problems.push('a choice touches what is below');
for (const e of document.querySelectorAll('.tools')) { const tops = [...e.children].filter(visible).map((c) => { const r = c.getBoundingClientRect(); return r.top + r.height / 2; }); if (Math.max(...tops) - Math.min(...tops) > 4) problems.push('count and zoom apart'); }
// A word that would fit into a line of its place is not broken: letters and digits, in short names with their number.
const words = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
while (words.nextNode()) {
  const text = words.currentNode, parent = text.parentElement, mine = document.createRange();
  // Code stands as it is, and has no places to break but its blanks.
  if (!/\w{2}/.test(text.data) || text.data.length > 20000 || parent.closest('svg, .code, .failure pre, td pre') || !visible(parent)) continue;
  let place = parent;
  while (getComputedStyle(place).display === 'inline') place = place.parentElement;
  // A column of a table can have more room than it took.
  const style = getComputedStyle(place), table = place.closest('td, th') && place.closest('table');
  const room = table ? table.clientWidth / 2 : place.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  for (const match of text.data.matchAll(/\b\w{1,8}_\d+\b|[A-Za-z0-9]{2,}/g)) {
    mine.setStart(text, match.index);
    mine.setEnd(text, match.index + match[0].length);
    const rects = [...mine.getClientRects()].filter((r) => r.width > 0), width = rects.reduce((sum, r) => sum + r.width, 0);
    if (new Set(rects.map((r) => Math.round(r.top))).size > 1 && width < room) problems.push(`broken inside a word: ${match[0]} of ${text.data.slice(0, 40)}, ${Math.round(width)} of ${Math.round(room)} px`);
  }
}
const panes = document.querySelector('.panes');
if (panes) {
  const stages = panes.view.panes.map((pane) => pane.stage.getBoundingClientRect()), room = panes.parentElement.clientWidth;
  const filled = stages[1] && stages[1].x > stages[0].x ? stages[0].width + stages[1].width : stages[0].width;
  if (filled < room - 4) problems.push(`the graph fills ${Math.round(filled)} of ${room} px`);
}
const view = document.querySelector('.panes.side') && document.querySelector('.panes').view;
if (view && innerWidth < 900 && (view.x < -1 || view.x + view.scene.width * view.scale > view.panes[0].stage.clientWidth + 1)) problems.push(`a side is cut: ${Math.round(view.x)} … ${Math.round(view.x + view.scene.width * view.scale)} of ${view.panes[0].stage.clientWidth}`);
for (const e of document.querySelectorAll('td, th')) { const word = e.clientWidth, text = e.innerText.trim(); if (visible(e) && text.length > 7 && word < 60 && e.clientHeight > 60) problems.push(`squeezed: ${text.slice(0, 40)}`); }
if (getComputedStyle(document.documentElement).colorScheme !== document.documentElement.dataset.theme) problems.push('scrollbars of the other theme');
return [...new Set(problems)].slice(0, 12);"""
