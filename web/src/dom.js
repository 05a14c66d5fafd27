// Elements without strings of HTML: what comes from notifications is text and never markup.

export const byId = (id) => document.getElementById(id);

/** An element with attributes (those that are functions are listeners) and children. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value);
    else if (key === 'class') element.className = value;
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function count(number) {
  if (number === undefined || number === null || Number.isNaN(number)) return '–';
  return Math.round(number).toLocaleString('en');
}
