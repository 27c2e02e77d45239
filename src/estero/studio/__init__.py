"""The studio: a query, its events and its answer in the browser, in a notebook or as a local page.

`Session` owns the events and answers messages; a widget and a server carry them. The meaning of messages is
defined here, by the public functions of a query, and never in the front end.
"""
