// News for an open page: the page is fetched again, and what is out of date on it is put in its place. Everything works without this.
"use strict";
(() => {
  const body = document.body;
  if (!body.dataset.marks || !window.EventSource) return;
  const kinds = body.dataset.kinds.trim().split(/\s+/);
  let shown = JSON.parse(body.dataset.marks);
  const button = document.getElementById("live");
  const updated = document.getElementById("updated");
  const slow = document.getElementById("slow");
  const ASK_MS = 15000; // where the gateway has no stream left for this page
  const QUIET_MS = 300; // several changes at once are one fetch
  let on = true;
  let waiting = false;
  let source = null;
  let again = null;

  const stale = (marks) =>
    Object.keys(shown).some((fleet) => kinds.some((kind) => marks[fleet] && marks[fleet][kind] !== shown[fleet][kind]));

  const say = (text) => {
    updated.textContent = text;
    updated.hidden = false;
  };

  // Whatever a person has opened, or stands on, stays as it is.
  const begun = (root) =>
    [...root.querySelectorAll("form input:not([type=hidden])")].some((one) => one.value !== one.defaultValue || one.checked !== one.defaultChecked);
  const put = (old, fresh) => {
    if (begun(old)) return; // half a form is somebody's work
    old.querySelectorAll("details[id][open]").forEach((one) => {
      const same = fresh.querySelector("#" + CSS.escape(one.id));
      if (same) same.open = true;
    });
    const focus = old.contains(document.activeElement) ? place(old, document.activeElement) : null;
    old.replaceWith(fresh);
    if (focus) find(fresh, focus)?.focus({ preventScroll: true });
    document.dispatchEvent(new CustomEvent("winnow:put", { detail: fresh }));
  };
  const place = (root, node) => {
    const path = [];
    for (let at = node; at !== root; at = at.parentElement) path.unshift(Array.prototype.indexOf.call(at.parentElement.children, at));
    return path;
  };
  const find = (root, path) => path.reduce((at, i) => at && at.children[i], root);

  const refresh = async () => {
    if (waiting || document.hidden || !on) return;
    waiting = true;
    try {
      await new Promise((done) => setTimeout(done, QUIET_MS));
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
      if (answer.redirected) return location.reload(); // the session has ended
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!fresh.body.dataset.marks) return;
      document.querySelectorAll("[data-live][id]").forEach((old) => {
        const now = fresh.getElementById(old.id);
        if (now) put(old, now);
      });
      shown = JSON.parse(fresh.body.dataset.marks);
      say("Updated " + new Date().toISOString().slice(11, 19) + ".");
    } catch {
      // The gateway is away: the stream comes back when it does, and says what is new.
    } finally {
      waiting = false;
    }
  };

  // "Live" is said only while a stream tells of changes; the foot of the page says what is left out without one.
  const name = (text, why = "") => {
    button.textContent = text;
    button.title = why;
    slow.textContent = why;
    slow.hidden = !why;
  };
  const listen = () => {
    source = new EventSource("/console/events");
    source.addEventListener("marks", (event) => {
      name("Live");
      if (stale(JSON.parse(event.data))) refresh();
    });
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) return; // it comes back by itself
      name("Every 15 s", "The gateway tells as many pages of changes as it may; this one asks every 15 seconds.");
      again = setTimeout(() => {
        refresh();
        listen();
      }, ASK_MS);
    };
  };
  const end = () => {
    source?.close();
    clearTimeout(again);
    source = again = null;
  };

  button.hidden = false;
  button.addEventListener("click", () => {
    on = !on;
    button.setAttribute("aria-pressed", String(on));
    name(on ? "Live" : "Paused");
    if (on) {
      listen();
      refresh();
    } else end();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && on) refresh();
  });
  listen();
})();
