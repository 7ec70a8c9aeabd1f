// Builds elements. Text from the data only ever enters as a text node, never as markup.

type Child = Node | string | null;

type Attributes = Record<string, string | boolean>;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A paragraph that says why nothing is shown. */
export function empty(text: string): HTMLElement {
  return el("p", { class: "empty" }, text);
}

export interface TableColumn<Row> {
  head: string;
  cell: (row: Row) => Child;
  /** Layout: numbers are aligned to the right, long text wraps. */
  kind?: "number" | "prose";
}

/** A table that scrolls by itself, so that the page never scrolls sideways. */
export function table<Row>(name: string, columns: TableColumn<Row>[], rows: Row[]): HTMLElement {
  const kind = (column: TableColumn<Row>) => ({ class: column.kind ?? "words" });
  const head = columns.map((column) => el("th", { scope: "col", ...kind(column) }, column.head));
  const body = rows.map((row) =>
    el("tr", {}, ...columns.map((column) => el("td", kind(column), column.cell(row)))),
  );
  return scroller(
    name,
    el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)),
  );
}

/** Marks what is wider than its place, so that a reader on a phone knows that there is more to the right. */
function markWide(entries: ResizeObserverEntry[]): void {
  for (const { target } of entries) {
    const wide = target.scrollWidth > target.clientWidth + 1;
    target.parentElement?.classList.toggle("wide", wide);
  }
}

// Made with the first table: modules are also read by tests without a page.
let widths: ResizeObserver | undefined;

export function scroller(name: string, content: HTMLElement): HTMLElement {
  const inner = el(
    "div",
    { class: "scroll", role: "region", "aria-label": name, tabindex: "0" },
    content,
  );
  widths ??= new ResizeObserver(markWide);
  widths.observe(inner);
  const hint = el(
    "p",
    { class: "scroll-hint", "aria-hidden": "true" },
    "More columns: scroll sideways →",
  );
  return el("div", { class: "scroll-frame" }, hint, inner);
}

/** A command that is copied by a click. If the browser forbids copying, it is selected. */
export function command(text: string): HTMLElement {
  const code = el("code", {}, text);
  const label = el("span", { class: "copy", "aria-live": "polite" }, "copy");
  const button = el("button", { type: "button", class: "command", title: "Copy" }, code, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      label.textContent = "copied";
    } catch {
      getSelection()?.selectAllChildren(code);
      label.textContent = "selected";
    }
  });
  return button;
}

/** Offers a file to the reader as a download. */
export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  el("a", { href: url, download: name }).click();
  // The browser reads the file after this task.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
