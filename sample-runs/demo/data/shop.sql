-- The orders that the refund conversations are about. Made up for the demo of dicta; no such shop exists.
PRAGMA page_size = 512;
CREATE TABLE orders (
    number TEXT PRIMARY KEY, status TEXT NOT NULL, delivered_on TEXT, paid_with TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE items (
    order_number TEXT NOT NULL REFERENCES orders, sku TEXT NOT NULL, name TEXT NOT NULL,
    ordered INTEGER NOT NULL, packed INTEGER NOT NULL, price_usd REAL NOT NULL,
    PRIMARY KEY (order_number, sku)
) WITHOUT ROWID;
CREATE TABLE refunds (
    id TEXT PRIMARY KEY, order_number TEXT NOT NULL REFERENCES orders, sku TEXT NOT NULL,
    amount_usd REAL NOT NULL, state TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE log (
    id INTEGER PRIMARY KEY, order_number TEXT NOT NULL REFERENCES orders, day TEXT NOT NULL, what TEXT NOT NULL
);
INSERT INTO orders VALUES
    ('NW-48213', 'return open', '2026-09-09', 'Visa ending 4471'),
    ('NW-47102', 'return received', '2026-08-12', 'Visa ending 2208'),
    ('NW-50031', 'delivered, short', '2026-09-18', 'Mastercard ending 0926');
INSERT INTO items VALUES
    ('NW-48213', 'TNT-RIDGE-2', 'Ridgeline 2 tent', 1, 1, 219.00),
    ('NW-47102', 'BOT-TARN-43', 'Tarn boots, size 43', 1, 1, 164.00),
    ('NW-50031', 'POL-CARB-1', 'Carbon trekking pole, single', 2, 1, 84.50);
INSERT INTO refunds VALUES
    ('RF-33274', 'NW-48213', 'TNT-RIDGE-2', 219.00, 'waits for the parcel'),
    ('RF-33318', 'NW-50031', 'POL-CARB-1', 84.50, 'sent to the card');
INSERT INTO log (order_number, day, what) VALUES
    ('NW-48213', '2026-09-09', 'delivered'),
    ('NW-48213', '2026-09-14', 'return RMA-90177 opened: damaged'),
    ('NW-47102', '2026-08-12', 'delivered'),
    ('NW-47102', '2026-08-24', 'return RMA-88410 opened: does not fit'),
    ('NW-47102', '2026-08-28', 'parcel received at the warehouse'),
    ('NW-47102', '2026-08-28', 'waits for inspection'),
    ('NW-50031', '2026-09-18', 'delivered'),
    ('NW-50031', '2026-09-18', 'short shipped: 1 of 2, bin empty'),
    ('NW-50031', '2026-09-21', 'refund RF-33318 of $84.50 sent');
