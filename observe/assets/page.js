// The page is complete without this script. With it, the state follows the events.
"use strict";
(() => {
  const state = document.getElementById("state"), link = document.getElementById("link");
  const list = document.getElementById("events"), filter = document.getElementById("filter");
  const most = 500; // events on the page
  let waiting = false, again = false;

  // refresh replaces the state by that of the server. One request is under way at a time.
  async function refresh() {
    if (waiting) { again = true; return; }
    waiting = true;
    try {
      const answer = await fetch("state", {cache: "no-store"});
      if (answer.ok) {
        const open = document.activeElement && state.contains(document.activeElement);
        state.innerHTML = await answer.text(); // html/template has escaped it
        if (open) state.focus();
      }
    } catch { /* the stream of events says that the server is gone */ }
    waiting = false;
    if (again) { again = false; setTimeout(refresh, 500); }
  }

  function hidden(item) { return filter.value !== "" && !item.textContent.toLowerCase().includes(filter.value.toLowerCase()); }

  function add(data) {
    const item = document.createElement("li"), at = document.createElement("time"), name = document.createElement("b"), text = document.createElement("span");
    const {time, level, msg, event, target, ...keys} = data;
    item.className = level;
    at.dateTime = time;
    at.textContent = new Date(time).toISOString().slice(11, 19);
    name.textContent = event;
    text.textContent = msg + Object.entries(keys).map(([k, v]) => ` ${k}=${typeof v === "string" ? v : JSON.stringify(v)}`).join("");
    item.append(at, " ", name, target ? ` ${target}` : "", " ", text);
    item.hidden = hidden(item);
    list.prepend(item);
    while (list.children.length > most) list.lastChild.remove();
  }

  // redraw loads the graphs again.
  function redraw(id) {
    for (const image of document.querySelectorAll("a.graph img")) {
      const url = new URL(image.src);
      url.searchParams.set("after", id);
      image.src = url;
    }
  }

  filter.addEventListener("input", () => { for (const item of list.children) item.hidden = hidden(item); });

  const stream = new EventSource("api/v1/events?since=now&name=message");
  stream.onopen = () => { link.textContent = "Live."; refresh(); };
  stream.onerror = () => { link.textContent = "xdspub does not answer. The page shows the last known state."; };
  stream.onmessage = e => {
    const data = JSON.parse(e.data);
    add(data);
    refresh();
    if (["published", "rolled-back", "held", "source-invalid", "source-valid", "snapshot-refused", "part-published", "part-waits"].includes(data.event)) redraw(e.lastEventId);
  };
  setInterval(refresh, 15000); // ages of states
})();
