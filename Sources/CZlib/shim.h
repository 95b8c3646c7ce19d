#ifndef DOCUMENTSYNC_CZLIB_H
#define DOCUMENTSYNC_CZLIB_H

#include <zlib.h>

// deflateInit2 and inflateInit2 are macros, which Swift cannot import.

static inline int czlib_deflate_init(z_streamp stream, int level, int strategy) {
  return deflateInit2(stream, level, Z_DEFLATED, MAX_WBITS, 8, strategy);
}

static inline int czlib_inflate_init(z_streamp stream) {
  return inflateInit2(stream, MAX_WBITS);
}

#endif
