package standin

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"fmt"
)

// page is the alignment of program sections in a file that Wine requires to map the sections and share them
// between processes. Go's linker aligns to 512 bytes, and Wine then reads the complete program into the private
// memory of each process.
const page = 4096

// alignSections moves the sections of a 64-bit program file so that each section starts at a page.
func alignSections(content []byte) ([]byte, error) {
	file, err := pe.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("align its sections: %w", err)
	}
	defer file.Close()
	header, ok := file.OptionalHeader.(*pe.OptionalHeader64)
	if !ok {
		return nil, fmt.Errorf("align its sections: it is no 64-bit program")
	}
	// The PE signature (4 bytes) and the file header (20) precede the optional header, the section headers (40
	// each) follow it.
	fileHeader := binary.LittleEndian.Uint32(content[0x3c:]) + 4
	optional := fileHeader + 20
	sections := optional + uint32(file.SizeOfOptionalHeader)
	aligned := padToPage(bytes.Clone(content[:header.SizeOfHeaders]))
	for i, section := range file.Sections {
		at := sections + 40*uint32(i)
		if section.Size == 0 {
			continue
		}
		raw := padToPage(bytes.Clone(content[section.Offset : section.Offset+section.Size]))
		binary.LittleEndian.PutUint32(aligned[at+16:], uint32(len(raw)))
		binary.LittleEndian.PutUint32(aligned[at+20:], uint32(len(aligned)))
		aligned = append(aligned, raw...)
	}
	binary.LittleEndian.PutUint32(aligned[optional+36:], page) // FileAlignment
	binary.LittleEndian.PutUint32(aligned[optional+60:], (header.SizeOfHeaders+page-1)/page*page)
	binary.LittleEndian.PutUint64(aligned[fileHeader+8:], 0) // Symbols, which are not copied.
	return aligned, nil
}

// padToPage pads to a full page.
func padToPage(b []byte) []byte { return append(b, make([]byte, (page-len(b)%page)%page)...) }
