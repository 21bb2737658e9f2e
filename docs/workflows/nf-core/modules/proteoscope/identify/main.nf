// Module in the style of nf-core. Not tested: written from the guidelines of nf-core.

process PROTEOSCOPE_IDENTIFY {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"

    input:
    tuple val(meta), path(spectra)
    path database

    output:
    tuple val(meta), path("${prefix}"), emit: project
    tuple val(meta), path("${prefix}.mzid.gz"), emit: mzid
    tuple val(meta), path("${prefix}.json"), emit: summary
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    proteoscope identify ${spectra} --database ${database} --out ${prefix} --run-name identify \\
        --threads ${task.cpus} --json ${args} > ${prefix}.json
    proteoscope export ${prefix} --run identify --format mzid --out ${prefix}.mzid.gz --quiet

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        proteoscope: \$(proteoscope --version | sed 's/proteoscope //')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    mkdir ${prefix}
    echo "" | gzip > ${prefix}.mzid.gz
    echo '{}' > ${prefix}.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        proteoscope: \$(proteoscope --version | sed 's/proteoscope //')
    END_VERSIONS
    """
}
