// Package export writes a thread, or one branch of it, for other eyes and
// other machines, and reads back what it wrote.
//
//	th, err := store.Load(ctx, id, session.LoadOptions{Bodies: true, Branch: name})
//	err = export.Markdown(w, th, nil)   // to read and edit
//	err = export.HTML(w, th, nil)       // one file, light and dark, no script
//	err = export.JSON(w, th)            // everything, for Import
//	id, err := export.Import(ctx, store, r)
//
// Markdown and HTML carry model, settings, times and sources beside the text.
// JSON carries token ids too, so that an imported thread goes on with the very
// tokens it would have had: exporting an import gives the same bytes.
//
// The package writes nothing but to the given writer and makes no network
// request; the HTML it writes makes none either: images become links, markup
// that a model wrote is shown as text, and the page forbids scripts.
package export
