// Package windows implements package host with Win32 for the local machine. The package calls the documented APIs of
// Windows directly and starts no other program. Each file documents the API and the reason for the choice.
//
// Files without a build constraint contain the decisions and encodings, which run and are tested on every system.
package windows
