#ifndef DOCUMENTSYNC_CMALLOC_H
#define DOCUMENTSYNC_CMALLOC_H

// Glibc's own settings of malloc, which its module map leaves out.
#include <malloc.h>

#endif
