-- Bodies and originals are packed with zstd: a third of zlib's processor time, a tenth smaller. What zlib packed stays readable.
COMMENT ON COLUMN stage_outputs.encoding IS 'raw, zstd or zlib.';
COMMENT ON COLUMN originals.encoding IS 'raw, zstd or zlib.';
COMMENT ON COLUMN outbox.encoding IS 'raw, zstd or zlib.';
COMMENT ON COLUMN dead_letters.encoding IS 'raw, zstd or zlib.';
