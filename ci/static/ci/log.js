// Two things that a page cannot do by itself: stay at the end of a growing log while its reader is there,
// and open the folds around the line that the address names.
(() => {
  const log = document.getElementById("steps");
  if (!log) return;
  const below = () => log.getBoundingClientRect().bottom - window.innerHeight;
  const isAtEnd = () => below() < 60;
  let following = isAtEnd();

  addEventListener("scroll", () => { following = isAtEnd(); }, { passive: true });
  document.addEventListener("htmx:afterSettle", () => {
    if (following && below() > 0) window.scrollBy(0, below() + 40);
  });

  const showLine = () => {
    const named = /^#(?:L(\d+)|step-\d+)$/.exec(location.hash);
    if (!named) return;
    const target = document.getElementById(location.hash.slice(1));
    if (!target) {
      // The line is on another page of the log.
      const query = new URLSearchParams(location.search);
      if (named[1] && query.get("line") !== named[1]) {
        query.delete("first");
        query.set("line", named[1]);
        location.search = query;
      }
      return;
    }
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView({ block: "center" });
    following = false;
  };
  addEventListener("hashchange", showLine);
  showLine();
})();
