-- A small database to look at: compose's pipeline carries it into the lake.
SET NAMES utf8mb4;
CREATE DATABASE shop CHARACTER SET utf8mb4;

CREATE TABLE shop.customers (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(80) NOT NULL,
    email VARCHAR(120) NULL,
    tier ENUM('standard', 'gold') NOT NULL DEFAULT 'standard',
    created DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
);

CREATE TABLE shop.orders (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    customer INT UNSIGNED NOT NULL,
    total DECIMAL(12, 2) NOT NULL,
    state ENUM('new', 'paid', 'sent', 'returned') NOT NULL DEFAULT 'new',
    note JSON NULL,
    placed TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    KEY (customer)
);

INSERT INTO shop.customers (name, email, tier) VALUES
    ('Ada Byrne', 'ada@shop.example', 'gold'),
    ('Jörg Öztürk', NULL, 'standard'),
    ('Mei Tanaka', 'mei@shop.example', 'standard');

INSERT INTO shop.orders (customer, total, state, note) VALUES
    (1, 129.90, 'paid', '{"gift": true}'),
    (3, 18.00, 'new', NULL),
    (1, 7.25, 'sent', '{"carrier": "post", "parcels": 2}');
