// Package labels runs on Windows the part of the kubelet that detects the Windows build. The package is separate from
// the other tests of the kubelet's module: its tests are compiled for Windows, and the other tests would take minutes.
package labels
