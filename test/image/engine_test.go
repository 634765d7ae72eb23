package image

import (
	"bytes"
	"os/exec"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// engine runs containers of one image.
type engine interface {
	start(t *testing.T, c container, log *bytes.Buffer) running
}

// running is a program that ends with the container and forwards signals to it.
type running struct {
	*exec.Cmd
	pid func() int // of the container's first process
}

// layoutOf is an image with its layout and tag.
type layoutOf struct {
	image          v1.Image
	directory, tag string
}

// imageName returns the image name for podman and skopeo.
func (l layoutOf) imageName() string { return "oci:" + l.directory + ":" + l.tag }
