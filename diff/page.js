
// Filters findings by operator, cluster and severity. The fragment of the URL contains the filter,
// so that a link to the page opens it with the same filter.
(() => {
  const form = document.getElementById("filter");
  if (!form) return;
  const operator = form.elements.operator, cluster = form.elements.cluster;
  const severities = [...form.querySelectorAll("[name=severity]")];
  const sections = [...document.querySelectorAll("details.operator")].map((e) => ({
    e, row: document.getElementById("to-" + e.id.slice(3)), groups: [...e.querySelectorAll(".group")], name: e.dataset.name,
    ranges: e.dataset.clusters === undefined ? null : e.dataset.clusters.split(" ").map((r) => r.split("-").map(Number)),
  }));
  const all = document.querySelectorAll(".findings tbody tr").length;

  const holds = (ranges, i) => i < 0 || !ranges || ranges.some(([from, to = from]) => from <= i && i <= to);

  const apply = () => {
    const which = cluster ? cluster.selectedIndex - 1 : -1;
    const on = new Set(severities.filter((s) => s.checked).map((s) => s.value));
    const every = on.size === severities.length;
    let shown = 0;
    for (const s of sections) {
      const here = (!operator || !operator.value || operator.value === s.name) && holds(s.ranges, which);
      let some = 0;
      for (const g of s.groups) {
        g.hidden = !every && !on.has(g.dataset.severity);
        if (!g.hidden) some++;
        if (here && !g.hidden) shown += g.querySelectorAll(".findings tbody tr").length;
      }
      const hidden = !here || (s.groups.length > 0 && some === 0) || (s.groups.length === 0 && s.row !== null && !every);
      s.e.hidden = hidden;
      if (s.row) s.row.hidden = hidden;
    }
    document.getElementById("shown").textContent = shown === all ? all + " findings" : shown + " of " + all + " findings";
  };

  const write = () => {
    const q = new URLSearchParams();
    if (operator && operator.value) q.set("operator", operator.value);
    if (cluster && cluster.value) q.set("cluster", cluster.value);
    if (severities.some((s) => !s.checked)) q.set("severity", severities.filter((s) => s.checked).map((s) => s.value).join(","));
    history.replaceState(null, "", "#" + q.toString().replace(/%2F/g, "/").replace(/%2C/g, ","));
    apply();
  };

  const choose = (select, value) => {
    if (!select) return;
    select.selectedIndex = Math.max(0, [...select.options].findIndex((o) => o.value === value));
  };
  const to = (id) => {
    const e = document.getElementById(id);
    if (!e) return;
    e.open = true;
    e.scrollIntoView();
    e.querySelector("summary").focus({preventScroll: true});
  };
  const open = () => {
    for (const s of sections) if (!s.e.hidden) s.e.open = true;
  };
  const read = () => {
    const fragment = location.hash.slice(1);
    if (/^op-\d+$/.test(fragment)) return apply(), to(fragment);
    const q = new URLSearchParams(fragment);
    choose(operator, q.get("operator") || "");
    choose(cluster, q.get("cluster") || "");
    const named = q.has("severity") ? new Set(q.get("severity").split(",")) : null;
    for (const s of severities) s.checked = !named || named.has(s.value);
    apply();
    if (operator && operator.value) open();
  };

  const each = (open) => () => {
    for (const s of sections) if (!s.e.hidden) for (const e of [s.e, ...s.groups]) e.open = open;
  };
  form.addEventListener("change", (event) => {
    write();
    if (event.target === operator && operator.value) open();
  });
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    history.replaceState(null, "", "#");
    read();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("open").addEventListener("click", each(true));
  document.getElementById("close").addEventListener("click", each(false));
  for (const a of document.querySelectorAll(".contents a")) {
    a.addEventListener("click", (event) => {
      event.preventDefault();
      to(a.getAttribute("href").slice(1));
    });
  }
  addEventListener("hashchange", read);
  form.hidden = false;
  read();
})();
