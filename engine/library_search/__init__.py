"""Search spectral libraries. Its entry comes first, which makes its kinds of work known."""

from proteoscope.engine.library_search.entry import LIBRARY_SEARCH as LIBRARY_SEARCH
