"""The DAGs of every pipeline file that is in order: see plugins/headrace/factory.py. Airflow reads this file."""

from headrace import factory, pipeline_files, settings

for pipeline in pipeline_files.load_folder(settings.pipelines_folder())[0]:
    for dag in factory.dags(pipeline):
        globals()[dag.dag_id] = dag
