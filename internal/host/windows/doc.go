// Package windows implements package host on Win32: it is the Windows machine that the program runs on. It calls the
// documented APIs of Windows directly and starts no other program. Each file says which API it uses and why that one.
//
// Files without a build constraint hold the decisions and encodings, which run and are tested on any system.
package windows
