// One module for both places: a page of `estero studio`, and a widget of anywidget.

import { App } from "./app";
import { serverSession, widgetSession, type WidgetModel } from "./messages";

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const session = widgetSession(model);
  const root = document.createElement("div");
  el.append(root);
  const app = new App(root, session, {
    text: String(model.get("text") ?? ""),
    wrote: (text) => {
      model.set("text", text);
      model.save_changes();
    },
  });
  const written = () => { app.text = String(model.get("text")); };
  model.on("change:text", written);
  void app.start();
  return () => {
    model.off("change:text", written);
    app.end();
    session.close();
  };
}

const page = document.getElementById("estero-studio");
if (page?.dataset["token"] !== undefined) {
  const app = new App(page, serverSession(page.dataset["token"]!));
  Object.assign(page, { studio: app });
  void app.start();
}

export default { render };
