# Sourced by the MySQL image when its data folder is new: the user as whom Headrace reads.
# The password is the secret's first line; quotes and backslashes in it are kept as they are.
headrace_password=$(head -n 1 /run/secrets/headrace_mysql_password)
headrace_password=${headrace_password//\\/\\\\}
headrace_password=${headrace_password//\'/\'\'}
docker_process_sql --database=mysql <<SQL
CREATE USER 'headrace'@'%' IDENTIFIED BY '${headrace_password}';
GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'headrace'@'%';
SQL
unset headrace_password
