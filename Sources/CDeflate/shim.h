#ifndef DOCUMENTSYNC_CDEFLATE_H
#define DOCUMENTSYNC_CDEFLATE_H

#include <libdeflate.h>

#endif
