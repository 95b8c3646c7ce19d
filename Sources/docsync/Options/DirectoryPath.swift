import ArgumentParser
import Foundation
import SyncDirectory

/// The path of a shared directory as the user gives it. Output and errors name the absolute path.
struct DirectoryPath: ExpressibleByArgument, CustomStringConvertible, Sendable {
  let path: String

  init(argument: String) { path = URL(fileURLWithPath: argument).standardizedFileURL.path }

  var description: String { path }

  var directory: FolderDirectory { FolderDirectory(root: path) }
}
