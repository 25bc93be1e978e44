-- nycflights13 in MySQL's types. Times of day are numbers such as 1745, as the data set has them.
-- No foreign keys: the data set names planes and airports that its own tables lack.

CREATE TABLE airlines (
  carrier CHAR(2) NOT NULL,
  name VARCHAR(64) NOT NULL,
  PRIMARY KEY (carrier)
);

CREATE TABLE airports (
  faa CHAR(3) NOT NULL,
  name VARCHAR(64) NOT NULL,
  lat DOUBLE NOT NULL,
  lon DOUBLE NOT NULL,
  alt SMALLINT NOT NULL COMMENT 'feet',
  tz TINYINT NOT NULL COMMENT 'hours from UTC',
  dst ENUM('A', 'N', 'U') NOT NULL COMMENT 'American, none, unknown',
  tzone VARCHAR(32) NULL,
  PRIMARY KEY (faa)
);

CREATE TABLE planes (
  tailnum VARCHAR(6) NOT NULL,
  year YEAR NULL,
  type ENUM('Fixed wing multi engine', 'Fixed wing single engine', 'Rotorcraft') NOT NULL,
  manufacturer VARCHAR(40) NOT NULL,
  model VARCHAR(24) NOT NULL,
  engines TINYINT UNSIGNED NOT NULL,
  seats SMALLINT UNSIGNED NOT NULL,
  speed SMALLINT UNSIGNED NULL COMMENT 'miles an hour',
  engine VARCHAR(16) NOT NULL,
  PRIMARY KEY (tailnum)
);

-- The key is the instant: by the clock, one hour of November 3rd comes twice.
CREATE TABLE weather (
  origin CHAR(3) NOT NULL,
  year SMALLINT NOT NULL,
  month TINYINT NOT NULL,
  day TINYINT NOT NULL,
  hour TINYINT NOT NULL,
  temp DECIMAL(5, 2) NULL COMMENT 'Fahrenheit',
  dewp DECIMAL(5, 2) NULL COMMENT 'Fahrenheit',
  humid DECIMAL(5, 2) NULL COMMENT 'percent',
  wind_dir SMALLINT NULL COMMENT 'degrees',
  wind_speed DOUBLE NULL COMMENT 'miles an hour',
  wind_gust DOUBLE NULL COMMENT 'miles an hour',
  precip DECIMAL(4, 2) NULL COMMENT 'inches',
  pressure DECIMAL(5, 1) NULL COMMENT 'millibar',
  visib DECIMAL(4, 2) NULL COMMENT 'miles',
  time_hour TIMESTAMP NOT NULL,
  PRIMARY KEY (origin, time_hour)
);

-- A number as key: the natural one (day, carrier, flight, origin, scheduled time) has seven columns, and a
-- snapshot's ranges and every index entry would carry them. Signed, so that the lake's column is a BIGINT.
CREATE TABLE flights (
  id BIGINT NOT NULL AUTO_INCREMENT,
  year SMALLINT NOT NULL,
  month TINYINT NOT NULL,
  day TINYINT NOT NULL,
  dep_time SMALLINT NULL,
  sched_dep_time SMALLINT NOT NULL,
  dep_delay SMALLINT NULL COMMENT 'minutes',
  arr_time SMALLINT NULL,
  sched_arr_time SMALLINT NOT NULL,
  arr_delay SMALLINT NULL COMMENT 'minutes',
  carrier CHAR(2) NOT NULL,
  flight SMALLINT NOT NULL,
  tailnum VARCHAR(6) NULL,
  origin CHAR(3) NOT NULL,
  dest CHAR(3) NOT NULL,
  air_time SMALLINT NULL COMMENT 'minutes',
  distance SMALLINT NOT NULL COMMENT 'miles',
  hour TINYINT NOT NULL,
  minute TINYINT NOT NULL,
  time_hour TIMESTAMP NOT NULL COMMENT 'of the scheduled departure, UTC',
  PRIMARY KEY (id)
);
