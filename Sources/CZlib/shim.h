#ifndef DOCUMENTSYNC_CZLIB_H
#define DOCUMENTSYNC_CZLIB_H

#include <zlib.h>

// deflateInit2 and inflateInit2 are macros, which Swift cannot import. The
// window is negative for deflate without zlib's frame: a hash stands over
// everything, another checksum would only cost time.

static inline int czlib_raw_deflate_init(z_streamp stream, int level, int strategy) {
  return deflateInit2(stream, level, Z_DEFLATED, -MAX_WBITS, 8, strategy);
}

static inline int czlib_raw_inflate_init(z_streamp stream) {
  return inflateInit2(stream, -MAX_WBITS);
}

#endif
