"""Search of sequences. Its entry comes first, which makes its kinds of work known."""

from proteoscope.engine.sequence_search.entry import SEQUENCE_SEARCH as SEQUENCE_SEARCH
