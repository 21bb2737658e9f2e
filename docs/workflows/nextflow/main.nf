// Identify each spectrum file in a separate project, write mzIdentML, and join the tables of all files.
// Not tested: written from the documentation of Nextflow (DSL 2).
//
//     nextflow run main.nf --spectra 'spectra/*.mzML' --database proteins.fasta -resume

params.spectra = 'spectra/*.mzML'
params.database = 'proteins.fasta'
params.preset = 'low-resolution'
params.outdir = 'results'

process IDENTIFY {
    tag "${spectra.simpleName}"
    cpus 2
    publishDir params.outdir, mode: 'copy'

    input:
    path spectra
    path database

    output:
    path "${spectra.simpleName}", emit: project
    path "${spectra.simpleName}.psms.tsv", emit: table
    path "${spectra.simpleName}.mzid.gz", emit: mzid

    script:
    """
    proteoscope identify '${spectra}' --database '${database}' --out '${spectra.simpleName}' --run-name identify \\
        --preset ${params.preset} --device cpu --threads ${task.cpus} --quiet
    cp '${spectra.simpleName}/exports/psms.tsv' '${spectra.simpleName}.psms.tsv'
    proteoscope export '${spectra.simpleName}' --run identify --format mzid --out '${spectra.simpleName}.mzid.gz' --quiet
    """
}

workflow {
    IDENTIFY(channel.fromPath(params.spectra), file(params.database))
    IDENTIFY.out.table.collectFile(name: 'psms.tsv', storeDir: params.outdir, keepHeader: true, sort: true)
}
