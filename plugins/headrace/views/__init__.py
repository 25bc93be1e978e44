"""Headrace's page in Airflow's UI: what it shows, and how it is served."""
