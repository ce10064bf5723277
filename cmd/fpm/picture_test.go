package main

import (
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/trace/top"
)

// TestPicture checks that the picture of trace top is a picture, shows the columns that
// there are, and holds nothing but shapes and text.
func TestPicture(t *testing.T) {
	file, err := os.Open("../../docs/trace-top.svg")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var text strings.Builder
	elements := map[string]bool{"svg": true, "title": true, "rect": true, "circle": true, "g": true, "text": true}
	d := xml.NewDecoder(file)
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if !elements[token.Name.Local] {
				t.Errorf("an element %s", token.Name.Local)
			}
		case xml.CharData:
			text.Write(token)
		}
	}
	view := top.View{Width: 120}
	for _, title := range strings.Fields(view.Table(nil)[0]) {
		if !strings.Contains(text.String(), title) {
			t.Errorf("the picture has no %s: run scripts/trace-top-picture", title)
		}
	}
}
