// Keeps the page up to date, copies commands, and puts "/" on the filter. Without it the page is as it was loaded.
"use strict";

const content = document.getElementById("content");
const seconds = Number(document.body.dataset.seconds);

// Make `old` what `fresh` is, touching only what differs: focus, selection and scrolling stay.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old === document.activeElement && old.nodeName === "INPUT") return; // somebody types
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  children(old, fresh);
}

// Elements with an id are matched by it, so that a row that moves stays the same row; others by their kind, in order.
function children(old, fresh) {
  const named = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    let same = child.id ? named.get(child.id) : at;
    while (!child.id && same && (same.id || same.nodeName !== child.nodeName)) same = same.nextSibling;
    if (!same) {
      old.insertBefore(child, at);
    } else {
      if (same === at) at = at.nextSibling;
      else old.insertBefore(same, at);
      morph(same, child);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// Many rows come with the widths of their columns, which style sheets can't read from the table.
function size() {
  const widths = content.querySelector("table[data-widths]")?.dataset.widths;
  content.classList.toggle("sized", Boolean(widths));
  if (widths && content.style.getPropertyValue("--widths") !== widths) content.style.setProperty("--widths", widths);
}

async function update() {
  const server = document.getElementById("server");
  try {
    const answer = await fetch(location.href, { headers: { "X-Rightpool-Fragment": "1" } });
    const fresh = document.createElement("main");
    fresh.innerHTML = await answer.text();
    const focused = document.activeElement && document.activeElement.id;
    performance.mark("update-begins");
    children(content, fresh);
    size();
    performance.measure("update", "update-begins");
    const again = focused && document.getElementById(focused);
    if (again && again !== document.activeElement) again.focus({ preventScroll: true });
    server.textContent = "";
  } catch {
    server.textContent = "rightpool ui does not answer: it has been ended, or this machine slept. What is shown is old.";
  }
}

size();

async function keepUpdating() {
  if (document.visibilityState === "visible") await update();
  setTimeout(keepUpdating, seconds * 1000);
}

setTimeout(keepUpdating, seconds * 1000);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && update());

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

document.addEventListener("keydown", (event) => {
  const filter = document.getElementById("q");
  if (event.key === "/" && filter && document.activeElement !== filter && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    filter.focus();
  }
});
