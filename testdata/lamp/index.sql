-- The package as an index database has it, but for the text of its CSVs.
CREATE TABLE package (name TEXT, default_channel TEXT);
CREATE TABLE channel (name TEXT, package_name TEXT, head_operatorbundle_name TEXT);
CREATE TABLE channel_entry (entry_id INTEGER PRIMARY KEY, channel_name TEXT, package_name TEXT, operatorbundle_name TEXT, replaces INTEGER, depth INTEGER);
CREATE TABLE operatorbundle (name TEXT, csv TEXT, bundle TEXT, bundlepath TEXT, skiprange TEXT, version TEXT, replaces TEXT, skips TEXT);
INSERT INTO package VALUES ('lamp', 'stable');
INSERT INTO channel VALUES ('stable', 'lamp', 'lamp.v1.1.0');
INSERT INTO channel_entry VALUES (1, 'stable', 'lamp', 'lamp.v1.1.0', 2, 0), (2, 'stable', 'lamp', 'lamp.v1.0.0', NULL, 1);
INSERT INTO operatorbundle (name, version, replaces) VALUES ('lamp.v1.0.0', '1.0.0', ''), ('lamp.v1.1.0', '1.1.0', 'lamp.v1.0.0');
