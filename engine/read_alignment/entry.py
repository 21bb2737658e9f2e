"""Entry of the read alignment in the list of searches."""

from proteoscope.engine import read_alignment
from proteoscope.engine.entry import Demo, Export, Input, Option, Search

__all__ = ["READ_ALIGNMENT"]

_EPILOG = """
Gaps: a gap of k bases costs GAP_OPEN + k * GAP_EXTEND. An alignment has at most MAXIMUM_GAPS gaps; a gap in the reference directly
followed by a gap in the read counts as two. The alignment found is always optimal. A pair without an alignment gets a row with the score
-inf.

Modes: prefix aligns the whole read with a prefix of the reference; within, the whole read with any part of the reference; local, the best
part of the read with any part of the reference, if the score is above 0. With --seed-length K, the first K bases of the read are paired
with the first K bases of the reference.

Presets: reads with qualities (FASTQ) or mates, and reads far shorter than the references, are mapped (--preset map-to-genome), unless a
preset, mode, strands, mapping, pairs or a seed is given.

Mapping: if the references are nucleotides, have at least 20,000 bases, and are a hundred times as long as the longest read, the modes
within and local map each read by minimisers on both strands, with one row per read at its best position. --mapping every or seeds overrides
this. --mates R2.fastq gives the other read of each fragment. Fragment lengths are estimated, or set by --set maximum_insert=600. Mates are
paired in the order of the files, or by name with --set mate_pairing=name. Mates that follow each other in one FASTQ file are recognised by
their names; with --set interleaved=no, each read is aligned separately.

Formats: --out FILE.tsv, FILE.sam, FILE.sorted.sam, FILE.bam, FILE.sorted.bam or FILE.paf, or --format. SAM and BAM contain every read, with
mapping qualities for mapped reads. BAM needs pysam (pip install pysam); a sorted BAM file gets an index in the same folder.

Bases: U counts as T. An ambiguous IUPAC code scores the mean of its nucleotides, rounded down.
Proteins: give a matrix, such as --matrix BLOSUM62 (whole numbers, NCBI's format), which also sets the gap costs.

--published: Carroll's recurrence as printed, in which a gap cannot lead back to the main diagonal. It misses alignments with a gap in the
reference and a later gap in the read.

Positions count from 1; read positions refer to the read as given, even if its reverse complement is aligned (strand -).
"""


def _alignments(name: str, title: str, *endings: str, is_binary: bool = False) -> Export:
    return Export(name, title, lambda: read_alignment.export.export_alignments, endings, is_binary=is_binary)


READ_ALIGNMENT = Search(
    kind="reads",
    name="read alignment",
    question="Where do my reads align?",
    manual="reads",
    purpose="Align reads with a maximum number of gaps",
    description="Align all reads with all references, or map each read. Each alignment is the best with at most a given number of gaps.",
    epilog=_EPILOG,
    job="Align {patterns} with {texts}",
    icon="reads",
    parameters=lambda: read_alignment.parameters.ReadAlignmentParameters,
    preset="standard",
    inputs=(
        Input(
            "texts",
            "Genome or reference",
            "proteins",
            "REFERENCE",
            "FASTA file with the genome or the sequences to align with, also gzipped",
            several=False,
            is_offered_again=True,
            wanted="a genome or reference",
            singular="reference",
            hint="a FASTA file with the genome, or the sequences to align with",
            takes_nucleotides=True,
        ),
        Input(
            "patterns",
            "Reads",
            "proteins",
            "READS",
            "FASTA or FASTQ file with the sequences to align, also gzipped",
            several=False,
            can_be_pasted=True,
            wanted="reads",
            singular="file of reads",
            hint="a FASTQ or FASTA file with the reads",
            second_content="reads",
            takes_nucleotides=True,
        ),
    ),
    options=(
        Option("pairs", "Align pair by pair", "align the i-th read only with the i-th reference"),
        Option("mates", "Mates", "FASTQ or FASTA file with the other read of each fragment, in the order of READS", metavar="FILE"),
        Option("sorted", "", "sort the records of SAM and BAM by their position on the references"),
    ),
    shortcuts=(
        "maximum_gaps",
        "mode",
        "strands",
        "mapping",
        "seed_length",
        "match",
        "mismatch",
        "matrix",
        "gap_open",
        "gap_extend",
    ),
    writes="file",
    run=lambda request, progress: read_alignment.search.align_reads(request, progress),
    modules=(lambda: read_alignment.search,),
    fitting=lambda: read_alignment.fitting,
    tables=lambda: read_alignment.tables.TABLES,
    stored=lambda: read_alignment.tables.STORED,
    methods=lambda: read_alignment.summary.methods,
    exports=(
        _alignments("tsv", "Table, tab-separated", ".tsv"),
        _alignments("sam", "Alignments as SAM", ".sam"),
        _alignments("sorted-sam", "Alignments as SAM, sorted by position", ".sorted.sam"),
        _alignments("bam", "Alignments as BAM", ".bam", is_binary=True),
        _alignments("sorted-bam", "Alignments as BAM, sorted by position, with its index", ".sorted.bam", is_binary=True),
        _alignments("paf", "Alignments as PAF", ".paf"),
    ),
    demo=Demo({"texts": ("lambda_phage.fasta.gz",), "patterns": ("lambda_reads.fastq.gz",)}, "map-to-genome"),
    workload_estimator=lambda: read_alignment.workload.estimate_workload,
    workload_types=(("reads", lambda: read_alignment.scoring.ReferencesAgainstReads),),
)
