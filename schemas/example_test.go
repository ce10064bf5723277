package schemas_test

import (
	"encoding/json"
	"fmt"

	"github.com/fpm-project/fpm/schemas"
)

func Example() {
	for _, name := range schemas.Names() {
		text, _ := schemas.Get(name)
		var head struct {
			ID    string `json:"$id"`
			Title string `json:"title"`
		}
		if err := json.Unmarshal(text, &head); err != nil {
			fmt.Println(err)
			return
		}
		if name == "rank-artifact" {
			fmt.Println(head.ID, "-", head.Title)
		}
	}
	// Output: urn:fpm:schema:rank-artifact:2 - Rank artifact of a self-benchmark run
}
