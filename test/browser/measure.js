// Measures the laid-out page and returns plain values: see Figures in browser.go. The page is
// unchanged afterwards.
(() => {
  const most = 20; // entries of each returned list
  const slack = 1; // tolerance for rounding, in CSS pixels
  const lists = {beyond: [], overflows: [], clipped: [], scrolls: [], overlaps: [], contrasts: [], unknown: [], small: []};
  const counts = {};
  const tell = (list, what) => {
    counts[list] = (counts[list] || 0) + 1;
    if (lists[list].length < most) lists[list].push(what);
  };

  const name = (e) => {
    let s = e.localName + (e.id ? "#" + e.id : "");
    for (const c of e.classList) s += "." + c;
    const text = (e.textContent || "").trim().replace(/\s+/g, " ");
    return s + (text ? " " + JSON.stringify(text.slice(0, 40)) : "");
  };

  // Colours: [red, green, blue, alpha], the last from 0 to 1.
  const canvas = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", {willReadFrequently: true});
  const colors = new Map();
  const color = (s) => {
    if (colors.has(s)) return colors.get(s);
    let c;
    const m = s.match(/^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/);
    if (m) {
      c = [+m[1], +m[2], +m[3], m[4] === undefined ? 1 : +m[4]];
    } else {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = s;
      pen.fillRect(0, 0, 1, 1);
      const d = pen.getImageData(0, 0, 1, 1).data;
      c = [d[0], d[1], d[2], d[3] / 255];
    }
    colors.set(s, c);
    return c;
  };
  const over = (top, below) => {
    const a = top[3];
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(1);
  };
  // Relative luminance and contrast ratio of WCAG 2.
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };

  // The default background of the page, which depends on its color-scheme.
  const probe = document.createElementNS("http://www.w3.org/1999/xhtml", "i");
  const root = document.documentElement;
  root.append(probe);
  probe.style.color = "Canvas";
  const paper = root instanceof SVGElement ? [255, 255, 255, 1] : color(getComputedStyle(probe).color);
  probe.remove();

  const isHTML = (e) => !(e instanceof SVGElement) || e.localName === "foreignObject";
  // The HTML background colour behind the text of an element.
  const grounds = new Map();
  const ground = (e) => {
    if (!e) return paper;
    if (grounds.has(e)) return grounds.get(e);
    let below = ground(e.parentElement);
    const style = getComputedStyle(e);
    if (isHTML(e) || e.ownerSVGElement === null) {
      if (style.backgroundImage !== "none") tell("unknown", name(e) + ": an image behind text");
      below = over(color(style.backgroundColor), below);
    }
    grounds.set(e, below);
    return below;
  };
  const opacity = (e) => {
    let o = 1;
    for (; e; e = e.parentElement) o *= +getComputedStyle(e).opacity;
    return o;
  };
  // The colour behind the centre of an SVG text, from the shapes that are painted before it.
  const shapes = new Map();
  const shapesOf = (svg) => {
    if (!shapes.has(svg)) {
      shapes.set(svg, [...svg.querySelectorAll("rect, circle, ellipse, polygon, path, image")].filter((s) => !s.closest("defs, clipPath, mask, marker, pattern, symbol")));
    }
    return shapes.get(svg);
  };
  const under = (text, box) => {
    const svg = text.closest("svg:not(svg svg)") || text.ownerSVGElement;
    let below = ground(svg);
    const at = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
    for (const shape of shapesOf(svg)) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
      const style = getComputedStyle(shape);
      if (style.fill === "none" || style.visibility !== "visible") continue;
      const r = shape.getBoundingClientRect();
      if (at.x < r.left || at.x > r.right || at.y < r.top || at.y > r.bottom) continue;
      if (shape.localName === "image" || style.fill.startsWith("url")) {
        tell("unknown", name(text) + ": an image or a gradient behind text");
        continue;
      }
      const matrix = shape.getScreenCTM();
      if (!matrix || !shape.isPointInFill(at.matrixTransform(matrix.inverse()))) continue;
      const c = color(style.fill).slice();
      c[3] *= +style.fillOpacity * opacity(shape);
      below = over(c, below);
    }
    return below;
  };

  const shown = (e) => e.checkVisibility({visibilityProperty: true, contentVisibilityAuto: false});
  const scroller = (e) => { // e or its nearest ancestor with overflow
    for (; e; e = e.parentElement) {
      if (isHTML(e) && e !== document.body && e !== root && getComputedStyle(e).overflowX !== "visible") return e;
    }
    return null;
  };
  // Text only for screen readers, in a box of one pixel.
  const unseen = (e) => {
    for (; e && isHTML(e); e = e.parentElement) {
      if (e.clientWidth <= 1 && e.clientHeight <= 1 && getComputedStyle(e).position === "absolute" && getComputedStyle(e).overflow !== "visible") return true;
    }
    return false;
  };

  const width = root.clientWidth || innerWidth;
  const out = {scrollWidth: Math.max(root.scrollWidth, document.body ? document.body.scrollWidth : 0), texts: 0, contrast: 21, font: Infinity, height: root.scrollHeight};

  // Boxes.
  for (const e of document.querySelectorAll("body *")) {
    if (!shown(e)) continue;
    if (isHTML(e)) {
      const style = getComputedStyle(e);
      if (e.scrollWidth > e.clientWidth + slack && style.display !== "inline" && !unseen(e)) {
        if (style.overflowX === "auto" || style.overflowX === "scroll") tell("scrolls", name(e));
        else if (style.overflowX === "visible") tell("overflows", name(e));
        else if (!/^(input|select|textarea|button)$/.test(e.localName)) tell("clipped", name(e));
      }
      if (style.overflowY !== "visible" && style.overflowY !== "auto" && style.overflowY !== "scroll" && e.scrollHeight > e.clientHeight + slack && !unseen(e) && !/^(input|select|textarea)$/.test(e.localName)) {
        tell("clipped", name(e));
      }
    }
    const r = e.getBoundingClientRect();
    if (r.width > 0 && r.height > 0 && (r.right > width + slack || r.left < -slack) && !scroller(e.parentElement) && !unseen(e)) tell("beyond", name(e));
  }

  // Controls: WCAG 2.2 requires 24 by 24 pixels, except within sentences.
  for (const e of document.querySelectorAll("button, summary, select, input, label:has(input)")) {
    if (!shown(e) || unseen(e) || (e.localName === "input" && e.closest("label"))) continue;
    const r = e.getBoundingClientRect();
    if (r.width < 24 || r.height < 24) tell("small", name(e) + ": " + r.width.toFixed() + " × " + r.height.toFixed());
  }

  // Texts.
  const boxes = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || !e || !shown(e) || e.closest("title, desc, style, script, defs, option") || unseen(e)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter((r) => r.width > 0.5 && r.height > 0.5);
    if (!rects.length) continue;
    out.texts++;
    const style = getComputedStyle(e);
    const svg = e instanceof SVGElement && e.localName !== "foreignObject";
    let scale = 1;
    if (svg) {
      const m = e.getScreenCTM();
      if (m) scale = Math.sqrt(Math.abs(m.a * m.d - m.b * m.c));
    }
    out.font = Math.min(out.font, parseFloat(style.fontSize) * scale);

    const below = svg ? under(e, rects[0]) : ground(e);
    const ink = color(svg ? style.fill : style.color).slice();
    ink[3] *= opacity(e) * (svg ? +style.fillOpacity : 1);
    const ratio = contrast(over(ink, below), below);
    out.contrast = Math.min(out.contrast, ratio);
    if (ratio < 4.5) tell("contrasts", name(e) + ": " + ratio.toFixed(2) + " (" + over(ink, below).slice(0, 3).map(Math.round) + " on " + below.slice(0, 3).map(Math.round) + ")");

    for (const r of rects) {
      if (svg) {
        // A name must be within its box and within the picture.
        const box = e.parentElement.querySelector(":scope > rect");
        for (const around of [box, e.ownerSVGElement]) {
          if (!around) continue;
          const b = around.getBoundingClientRect();
          if (r.left < b.left - slack || r.right > b.right + slack || r.top < b.top - slack || r.bottom > b.bottom + slack) tell("overflows", name(e) + " leaves " + around.localName);
        }
      }
      // Line boxes may overlap: compare them without the space for ascenders and descenders.
      boxes.push({node, e, left: r.left + 1, right: r.right - 1, top: r.top + r.height * 0.2, bottom: r.bottom - r.height * 0.2});
    }
    if (!svg && !scroller(e)) {
      for (const r of rects) if (r.right > width + slack || r.left < -slack) tell("beyond", "text in " + name(e));
    }
  }
  boxes.sort((a, b) => a.top - b.top);
  for (let i = 0; i < boxes.length; i++) {
    for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom; j++) {
      const [a, b] = [boxes[i], boxes[j]];
      if (a.left < b.right && b.left < a.right && a.right > a.left && b.right > b.left) tell("overlaps", name(a.e) + " and " + name(b.e));
    }
  }
  if (!out.texts) out.font = 0;
  for (const [list, n] of Object.entries(counts)) {
    if (n > most) lists[list].push("and " + (n - most) + " more");
  }
  return Object.assign(out, lists);
})()
