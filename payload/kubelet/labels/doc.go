// Package labels runs on Windows the part of the kubelet that knows which Windows it runs on. It is apart from the
// other tests of the kubelet's module, for it is compiled for Windows, and they would take minutes.
package labels
