#if os(Linux)
  import Foundation
  import Testing

  /// A library that replaces `openat`: a process that loads it hangs when it opens a file or folder
  /// of a certain name, as a process does on a mount whose server was stopped.
  ///
  /// A named pipe would not block the command, since the command opens files without blocking. A
  /// FUSE mount needs rights that tests do not have everywhere.
  struct HangingFolder {
    private let library: String
    private let mark: String

    private static let source = """
      #define _GNU_SOURCE
      #include <dlfcn.h>
      #include <fcntl.h>
      #include <stdarg.h>
      #include <stdlib.h>
      #include <string.h>
      #include <unistd.h>

      static int opened(const char *symbol, int folder, const char *name, int flags, int mode) {
        const char *hanging = getenv("HANGING_NAME"), *mark = getenv("HANGING_MARK");
        if (hanging && mark && strstr(name, hanging)) {
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
      library = folder + "/.hanging.so"
      mark = folder + "/.hangs"
      let file = folder + "/.hanging.c"
      try Self.source.write(toFile: file, atomically: false, encoding: .utf8)
      let compiler = Process()
      compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      compiler.arguments = ["clang", "-shared", "-fPIC", "-o", library, file, "-ldl"]
      try compiler.run()
      compiler.waitUntilExit()
      try #require(compiler.terminationStatus == 0)
    }

    /// The lines of the shell that make a process hang at names that contain `name`.
    func shell(at name: String) -> String {
      "export LD_PRELOAD='\(library)' HANGING_NAME='\(name)' HANGING_MARK='\(mark)'"
    }

    /// Waits until a process hangs; returns false if the process ends before, or goes on for two
    /// minutes.
    func hangs(_ process: Process) -> Bool {
      let deadline = Date(timeIntervalSinceNow: 120)
      while !FileManager.default.fileExists(atPath: mark) {
        guard process.isRunning, Date() < deadline else { return false }
        Thread.sleep(forTimeInterval: 0.005)
      }
      return true
    }
  }
#endif
