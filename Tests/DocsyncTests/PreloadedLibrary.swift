#if os(Linux)
  import Foundation
  import Testing

  /// A library, compiled from C, that replaces functions of the system in a process that loads it.
  struct PreloadedLibrary {
    private let path: String

    /// Compiles `source` in a folder.
    init(_ name: String, _ source: String, in folder: String) throws {
      path = "\(folder)/.\(name).so"
      let file = "\(folder)/.\(name).c"
      try source.write(toFile: file, atomically: false, encoding: .utf8)
      let compiler = Process()
      compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      compiler.arguments = ["clang", "-shared", "-fPIC", "-o", path, file, "-ldl"]
      try compiler.run()
      compiler.waitUntilExit()
      try #require(compiler.terminationStatus == 0)
    }

    /// The line of the shell that makes a process load it, with variables for it.
    func shell(_ variables: KeyValuePairs<String, String>) -> String {
      "export LD_PRELOAD='\(path)'" + variables.map { " \($0)='\($1)'" }.joined()
    }
  }
#endif
