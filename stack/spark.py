"""How a Spark driver of this machine is started, by Airflow and by the tests."""

# Jobs of half a minute on few cores. The optimizing compiler costs them more than it gives; without it the JVM
# keeps 48 MB for compiled code, and once that is full it compiles no more: measured, a fifth of a compaction's time.
# Spark's classes fill 200 MB: by default Java collects all of its garbage four times on the way there, for a second.
LASTING = "-XX:ReservedCodeCacheSize=240m -XX:+UseParallelGC -XX:MetaspaceSize=256m"
JAVA = f"-XX:TieredStopAtLevel=1 {LASTING}"
