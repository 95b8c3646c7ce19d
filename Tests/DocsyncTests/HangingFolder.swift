#if os(Linux)
  import Foundation

  /// A library that replaces `openat`: a process that loads it hangs when it opens a file or folder
  /// of a certain name, as a process does on a mount whose server was stopped. From then on the
  /// clock by which the process limits its waiting stands, so that no limit of its own ends it.
  ///
  /// A named pipe would not block the command, since the command opens files without blocking. A
  /// FUSE mount needs rights that tests do not have everywhere.
  struct HangingFolder {
    private let library: PreloadedLibrary
    private let mark: String

    private static let source = """
      #define _GNU_SOURCE
      #include <dlfcn.h>
      #include <fcntl.h>
      #include <stdarg.h>
      #include <stdlib.h>
      #include <string.h>
      #include <time.h>
      #include <unistd.h>

      static volatile int stands;
      static struct timespec standing;

      int clock_gettime(clockid_t clock, struct timespec *time) {
        static int (*next)(clockid_t, struct timespec *);
        if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
        // Swift's ContinuousClock.
        if (!stands || clock != CLOCK_BOOTTIME) return next(clock, time);
        *time = standing;
        return 0;
      }

      static int opened(const char *symbol, int folder, const char *name, int flags, int mode) {
        const char *hanging = getenv("HANGING_NAME"), *mark = getenv("HANGING_MARK");
        if (hanging && mark && strstr(name, hanging)) {
          clock_gettime(CLOCK_BOOTTIME, &standing);
          stands = 1;
          close(open(mark, O_CREAT | O_WRONLY, 0600));
          for (;;) pause();
        }
        int (*next)(int, const char *, int, ...) = dlsym(RTLD_NEXT, symbol);
        return next(folder, name, flags, mode);
      }

      int openat(int folder, const char *name, int flags, ...) {
        va_list rest;
        va_start(rest, flags);
        int mode = va_arg(rest, int);
        va_end(rest);
        return opened("openat", folder, name, flags, mode);
      }

      int openat64(int folder, const char *name, int flags, ...) {
        va_list rest;
        va_start(rest, flags);
        int mode = va_arg(rest, int);
        va_end(rest);
        return opened("openat64", folder, name, flags, mode);
      }
      """

    init(in folder: String) throws {
      library = try PreloadedLibrary("hanging", Self.source, in: folder)
      mark = folder + "/.hangs"
    }

    /// The line of the shell that makes a process hang at names that contain `name`.
    func shell(at name: String) -> String {
      library.shell(["HANGING_NAME": name, "HANGING_MARK": mark])
    }

    /// Waits until a process hangs; returns false if the process ends before, or goes on for ten
    /// minutes.
    func hangs(_ process: Process) -> Bool {
      let deadline = ContinuousClock.now + .seconds(600)
      while !FileManager.default.fileExists(atPath: mark) {
        guard process.isRunning, .now < deadline else { return false }
        Thread.sleep(forTimeInterval: 0.005)
      }
      return true
    }
  }
#endif
