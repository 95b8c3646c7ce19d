#if os(Linux)
  import Foundation

  /// A library that kills the process that loads it right after a certain call: the process ends at
  /// that place, however fast it is.
  struct KillingCalls {
    /// A place at which a process is killed.
    struct Place {
      /// Functions of the system, of one effect.
      enum Call: String {
        /// Creates a file or a folder.
        case create
        /// Writes to a file.
        case write
        /// Renames a file, to the name that counts.
        case rename
      }

      var call: Call
      /// A part of the path of the file, which ends in `$`.
      var name: String
      /// The number of bytes, in all, that are written first.
      var bytes = 0
      /// A part of the path of a file that is written to before; empty for none.
      var after = ""
    }

    private let library: PreloadedLibrary

    private static let source = """
      #define _GNU_SOURCE
      #include <dlfcn.h>
      #include <fcntl.h>
      #include <limits.h>
      #include <signal.h>
      #include <stdarg.h>
      #include <stdatomic.h>
      #include <stdio.h>
      #include <stdlib.h>
      #include <string.h>
      #include <sys/stat.h>
      #include <unistd.h>

      static atomic_long written;
      static atomic_int isAfter;

      static void come(const char *call, const char *path, long bytes) {
        const char *wanted = getenv("KILL_CALL"), *name = getenv("KILL_NAME"),
          *least = getenv("KILL_BYTES"), *after = getenv("KILL_AFTER");
        if (!wanted || !name || !least || !after) return;
        char text[2 * PATH_MAX + 2];
        snprintf(text, sizeof text, "%s$", path);
        if (!*after || (!strcmp(call, "write") && strstr(text, after))) isAfter = 1;
        if (!isAfter || strcmp(call, wanted) || !strstr(text, name)) return;
        if ((written += bytes) < atol(least)) return;
        for (;;) kill(getpid(), SIGKILL);
      }

      static void comeTo(const char *call, int file, const char *name, long bytes) {
        char path[2 * PATH_MAX] = "", link[64];
        if (!name || *name != '/') {
          if (file == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
          else snprintf(link, sizeof link, "/proc/self/fd/%d", file);
          long count = readlink(link, path, PATH_MAX - 1);
          path[count < 0 ? 0 : count] = 0;
        }
        if (name) {
          if (*path) strcat(path, "/");
          strncat(path, name, PATH_MAX - 1);
        }
        come(call, path, bytes);
      }

      #define NEXT(symbol) ((__typeof__(&symbol))dlsym(RTLD_NEXT, #symbol))

      #define OPENAT(symbol) \\
        int symbol(int folder, const char *name, int flags, ...) { \\
          va_list rest; \\
          va_start(rest, flags); \\
          int mode = va_arg(rest, int); \\
          va_end(rest); \\
          int file = NEXT(symbol)(folder, name, flags, mode); \\
          if (file >= 0 && flags & O_CREAT) comeTo("create", folder, name, 0); \\
          return file; \\
        }
      OPENAT(openat)
      OPENAT(openat64)

      int mkdirat(int folder, const char *name, mode_t mode) {
        int result = NEXT(mkdirat)(folder, name, mode);
        if (result == 0) comeTo("create", folder, name, 0);
        return result;
      }

      int renameat(int from, const char *old, int to, const char *name) {
        int result = NEXT(renameat)(from, old, to, name);
        if (result == 0) comeTo("rename", to, name, 0);
        return result;
      }

      ssize_t write(int file, const void *bytes, size_t count) {
        ssize_t result = NEXT(write)(file, bytes, count);
        if (result > 0) comeTo("write", file, NULL, result);
        return result;
      }

      #define PWRITE(symbol, position) \\
        ssize_t symbol(int file, const void *bytes, size_t count, position offset) { \\
          ssize_t result = NEXT(symbol)(file, bytes, count, offset); \\
          if (result > 0) comeTo("write", file, NULL, result); \\
          return result; \\
        }
      PWRITE(pwrite, off_t)
      PWRITE(pwrite64, off64_t)
      """

    init(in folder: String) throws {
      library = try PreloadedLibrary("killing", Self.source, in: folder)
    }

    /// The line of the shell that makes a process be killed at a place.
    func shell(at place: Place) -> String {
      library.shell([
        "KILL_CALL": place.call.rawValue, "KILL_NAME": place.name, "KILL_BYTES": "\(place.bytes)",
        "KILL_AFTER": place.after,
      ])
    }
  }
#endif
