"""Search for modified peptides. Its entry comes first, which makes its kinds of work known."""

from proteoscope.engine.modified_search.entry import MODIFIED_SEARCH as MODIFIED_SEARCH
