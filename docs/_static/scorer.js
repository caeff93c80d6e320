/* How the search orders what it finds. Guides and tutorials come first, since most readers have a
   question; then how it works and the reference; evidence and lists of changes come last. */
const FOLDERS = [
  ["guide/index", 0], ["guide/", 30], ["tutorials/", 20], ["gallery/", 8], ["how/", 8],
  ["api/generated/polyspan.baselines", -10], ["evidence/", -8], ["reproduction/", -8],
  ["project/changelog", -30], ["dependencies", -30],
];

var Scorer = {
  // A result is [page, title, anchor, description, score, file, kind].
  score: ([page, title, anchor, , score]) => {
    const words = new URLSearchParams(window.location.search).get("q")?.toLowerCase().split(/\s+/) ?? [];
    const folder = FOLDERS.find(([name]) => page.startsWith(name));
    // A page about the word: every word is in its name or in its title.
    const about = `${page} ${title}`.toLowerCase();
    const named = !anchor && words.every((word) => about.includes(word));
    return score + (folder ? folder[1] : 0) + (named ? 20 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
