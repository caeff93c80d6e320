(() => {
  "use strict";
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // Filter: shows the rows and claims of one kind, and hides groups without any.
  const buttons = all("[data-filter]");
  const items = all("[data-kind]");
  const status = document.getElementById("page-status");
  const filter = (kind) => {
    for (const item of items) item.hidden = kind !== "all" && item.dataset.kind !== kind;
    for (const box of all(".group, section[data-section]")) {
      box.classList.toggle("without", kind !== "all" && !box.querySelector("[data-kind]:not([hidden])"));
    }
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.filter === kind));
    const shown = items.filter((item) => !item.hidden).length;
    status.textContent = kind === "all" ? "" : `${shown} of ${items.length} shown`;
  };
  for (const button of buttons) button.addEventListener("click", () => filter(button.dataset.filter));

  // Tooltip of a point: our own instead of the browser's, because it also works on a touch screen.
  const tip = document.getElementById("page-tip");
  document.addEventListener("pointerover", (event) => {
    const point = event.target.closest(".pt");
    tip.hidden = !point;
    if (!point) return;
    const title = point.querySelector("title");
    if (title) {
      point.dataset.tip = title.textContent;
      title.remove();
    }
    tip.textContent = point.dataset.tip;
    const box = point.getBoundingClientRect();
    const half = tip.offsetWidth / 2 + 6;
    const middle = box.left + box.width / 2;
    tip.style.left = `${Math.max(half, Math.min(middle, document.documentElement.clientWidth - half))}px`;
    tip.style.top = `${box.top < 60 ? box.bottom + 34 : box.top}px`;
  });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // Navigation: marks the section in view and keeps its link in sight.
  const nav = document.querySelector("nav");
  const links = new Map(all("a", nav).map((link) => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((e) => e.isIntersecting)) {
      for (const link of links.values()) link.removeAttribute("aria-current");
      const link = links.get(entry.target.id);
      link.setAttribute("aria-current", "true");
      nav.scrollTo({ left: link.offsetLeft - nav.clientWidth / 2 + link.clientWidth / 2 });
    }
  }, { rootMargin: "-25% 0px -70% 0px" });
  for (const id of links.keys()) watch.observe(document.getElementById(id));
})();
