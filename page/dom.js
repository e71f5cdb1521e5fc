/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers around the document. */

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes (`class`, `title`, ...) and children (nodes or text; null is left out). */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same in SVG. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Writes only what differs, so that a step which changes nothing costs no layout. */
export function setText(node, text) {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

export function setAttr(node, name, value) {
  const text = String(value);
  if (node.getAttribute(name) !== text) {
    node.setAttribute(name, text);
  }
}

export function show(node, visible) {
  if (node.hasAttribute("hidden") === visible) {
    node.toggleAttribute("hidden", !visible); /* the property `hidden` is HTML's alone */
  }
}

/** An icon of the sprite in index.html; `label` is read aloud, without one the icon is decoration. */
export function icon(name, label = "") {
  const spoken = label === "" ? { "aria-hidden": "true" } : { role: "img", "aria-label": label };
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", ...spoken }, svg("use", { href: `#icon-${name}` }));
}

const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");

/** True if the reader asked for less motion. */
export function still() {
  return reduced.matches;
}
