"""The metric pipeline: tables of families, a store that keeps rendered bytes, and the text format.

Rooms hand facts to the `store`; every reader (the scrape, the pages, and the lifecycle that writes Unknown) asks the same store, so
none of them can see another number than the others.
"""
