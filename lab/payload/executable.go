// Package payload generates the lab's payload: the real agent, and small simulated executables for all other
// programs of a Windows node.
package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// executableMagic is the beginning of a simulated executable: the two letters of every Windows executable, and
// a descriptive line.
const executableMagic = "MZwmco-lab-stand-in\n"

// Executable describes the program that a simulated executable replaces. It is the second line of the file.
type Executable struct {
	Component string `json:"component"` // "kubelet"
	File      string `json:"file"`      // "kubelet.exe"
	Version   string `json:"version"`   // "v1.36.3"
	Size      int    `json:"size"`      // of the complete file, to detect an incomplete one
	Defect    Defect `json:"defect,omitempty"`
}

// Defect is the fault of a program; "" for none. Only the kubelet supports faults other than Exits.
type Defect string

// Defects.
const (
	// DefectExits makes the program exit with an error immediately after the start.
	DefectExits Defect = "exits"
	// DefectUnhealthy keeps the program running with a failing health endpoint.
	DefectUnhealthy Defect = "unhealthy"
	// DefectNotReady keeps the program healthy, but the program reports its Node as not Ready.
	DefectNotReady Defect = "not-ready"
)

// ReadExecutable reads the description from a file. It returns an error if the file is incomplete or no
// simulated executable.
func ReadExecutable(content []byte) (Executable, error) {
	rest, ok := bytes.CutPrefix(content, []byte(executableMagic))
	if !ok {
		return Executable{}, fmt.Errorf("it is no stand-in of the lab")
	}
	line, _, ok := bytes.Cut(rest[:min(len(rest), 1024)], []byte("\n"))
	if !ok {
		return Executable{}, fmt.Errorf("the stand-in was cut off in its header")
	}
	var e Executable
	if err := json.Unmarshal(line, &e); err != nil {
		return Executable{}, fmt.Errorf("read the stand-in's header: %w", err)
	}
	if e.Size != len(content) {
		return Executable{}, fmt.Errorf("the stand-in for %s has %d bytes and should have %d", e.File, len(content), e.Size)
	}
	return e, nil
}

// blockBytes is the unit of filler: noiseBytes of noise, and text in the rest. The compression ratio equals the
// ratio of all real executables: 55 to 62 of 308 MB.
const (
	blockBytes = 4096
	noiseBytes = 780
)

// Content returns the content of the file. The same Executable yields the same bytes; another version differs
// in the header and one block of eight, as a patch release does.
func (e Executable) Content() []byte {
	header, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("encode the header of a stand-in: %v", err)) // Strings and a number can be encoded.
	}
	content := make([]byte, 0, max(e.Size, 0)+blockBytes)
	content = append(content, executableMagic...)
	content = append(content, header...)
	content = append(content, '\n')
	for block := 0; len(content) < e.Size; block++ {
		content = e.appendBlock(content, block)
	}
	return content[:max(e.Size, len(executableMagic)+len(header)+1)]
}

func (e Executable) appendBlock(content []byte, block int) []byte {
	seed := fmt.Sprintf("%s/%s/%d", e.Component, e.File, block)
	if block%8 == 0 {
		seed += "/" + e.Version + string(e.Defect)
	}
	start := len(content)
	content = append(content, make([]byte, noiseBytes)...)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(content[start:]) // never fails
	for len(content) < start+blockBytes {
		content = append(content, "This program cannot be run in DOS mode, nor outside of the lab.\r\n"...)
	}
	return content[:start+blockBytes]
}
